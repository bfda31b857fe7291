// Integer arithmetic, bit by bit against C++, at the ends of every type.

#include "test/runtime/simulator/machine.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

namespace kiln::simulator::test {

template <class T> static T as(uint64_t word) { return static_cast<T>(word); }
template <class T> static uint64_t word(T value) { return static_cast<std::make_unsigned_t<T>>(value); }

/// Register type and edge values for a C++ type.
template <class T> static std::string registerOf() { return "b" + std::to_string(8 * sizeof(T)); }
template <class T> static const Column &valuesOf() {
  return sizeof(T) == 2 ? words16 : sizeof(T) == 4 ? words32 : words64;
}
template <class T> static std::string nameOf() {
  return (std::is_signed_v<T> ? "s" : "u") + std::to_string(8 * sizeof(T));
}

template <class T, class Function> static void expectBinary(const std::string &opcode, Function f) {
  expectEach(opcode + "." + nameOf<T>() + " %d, %a, %b;", registerOf<T>(), {registerOf<T>(), registerOf<T>()},
             valuesOf<T>(), [&](const Column &row) { return word(static_cast<T>(f(as<T>(row[0]), as<T>(row[1])))); });
}

template <class T> class IntegerTest : public testing::Test {};
using Integers = testing::Types<uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t>;
TYPED_TEST_SUITE(IntegerTest, Integers);

// Sums, differences and the low halves of products wrap.
TYPED_TEST(IntegerTest, ArithmeticWraps) {
  using T = TypeParam;
  using U = std::make_unsigned_t<T>;
  expectBinary<T>("add", [](T a, T b) { return static_cast<U>(a) + static_cast<U>(b); });
  expectBinary<T>("sub", [](T a, T b) { return static_cast<U>(a) - static_cast<U>(b); });
  expectBinary<T>("mul.lo", [](T a, T b) { return static_cast<uint64_t>(a) * static_cast<uint64_t>(b); });
}

// The high half of a product is that of the exact one.
TYPED_TEST(IntegerTest, HighProductIsExact) {
  using T = TypeParam;
  expectBinary<T>("mul.hi", [](T a, T b) {
    const __int128 left = a, right = b;
    const unsigned __int128 product = std::is_signed_v<T>
                                          ? static_cast<unsigned __int128>(left * right)
                                          : static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b);
    return static_cast<T>(product >> (8 * sizeof(T)));
  });
}

/// Part `index` of a word with parts of `bits` bits, with the type's sign.
static int64_t partOf(uint64_t word, const std::string &type, int bits, int index) {
  const int64_t part = static_cast<int64_t>(word >> (bits * index) & ((uint64_t{1} << bits) - 1));
  return type == "s32" && part >= int64_t{1} << (bits - 1) ? part - (int64_t{1} << bits) : part;
}

// dp4a adds four products of bytes to a word, dp2a two of halves and bytes; each operand has its own sign, and sums
// wrap.
TEST(DotTest, AddsProductsOfParts) {
  for (const std::string a : {"u32", "s32"})
    for (const std::string b : {"u32", "s32"})
      for (const auto &[name, terms, first] : {std::tuple{"dp4a", 4, 0}, {"dp2a.lo", 2, 0}, {"dp2a.hi", 2, 2}})
        expectEach(std::string(name) + "." + a + "." + b + " %d, %a, %b, %c;", "b32", {"b32", "b32", "b32"},
                   {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0x80ff7f01, 0x0102fffe}, [&](const Column &row) {
                     auto sum = static_cast<int64_t>(row[2]);
                     for (int i = 0; i < terms; ++i)
                       sum += partOf(row[0], a, 32 / terms, i) * partOf(row[1], b, 8, first + i);
                     return static_cast<uint64_t>(static_cast<uint32_t>(sum));
                   });
}

// min and max compare by the type.
TYPED_TEST(IntegerTest, ExtremaFollowTheType) {
  using T = TypeParam;
  expectBinary<T>("min", [](T a, T b) { return std::min(a, b); });
  expectBinary<T>("max", [](T a, T b) { return std::max(a, b); });
}

// Division truncates and the remainder has the dividend's sign, where PTX defines the result. By 0 both are all ones,
// as on NVIDIA's GPUs.
TYPED_TEST(IntegerTest, DivisionTruncates) {
  using T = TypeParam;
  const std::vector<Column> all = combinations(valuesOf<T>(), 2);
  std::vector<Column> defined(2);
  for (size_t i = 0; i < all[0].size(); ++i)
    if (!(std::is_signed_v<T> && as<T>(all[1][i]) == static_cast<T>(-1))) {
      defined[0].push_back(all[0][i]);
      defined[1].push_back(all[1][i]);
    }
  const std::string type = registerOf<T>();
  const Column quotients = evaluate("div." + nameOf<T>() + " %d, %a, %b;", type, {type, type}, defined);
  const Column remainders = evaluate("rem." + nameOf<T>() + " %d, %a, %b;", type, {type, type}, defined);
  for (size_t i = 0; i < defined[0].size(); ++i) {
    const T a = as<T>(defined[0][i]), b = as<T>(defined[1][i]);
    EXPECT_EQ(quotients[i], word(static_cast<T>(b ? a / b : -1))) << a << " / " << b;
    EXPECT_EQ(remainders[i], word(static_cast<T>(b ? a % b : -1))) << a << " % " << b;
  }
}

// mad.hi.sat clamps the sum of the high half and c.
TEST(IntegerTest, SumsOfHighHalvesSaturate) {
  expectEach("mad.hi.sat.s32 %d, %a, %b, %c;", "b32", {"b32", "b32", "b32"}, words32, [](const Column &row) {
    const auto number = [&](size_t i) { return int64_t{static_cast<int32_t>(row[i])}; };
    const int64_t sum = (number(0) * number(1) >> 32) + number(2);
    return static_cast<uint32_t>(std::min<int64_t>(std::max<int64_t>(sum, INT32_MIN), INT32_MAX));
  });
}

// mad adds to the low half.
TYPED_TEST(IntegerTest, MadAddsToTheLowHalf) {
  using T = TypeParam;
  expectEach("mad.lo." + nameOf<T>() + " %d, %a, %b, %c;", registerOf<T>(),
             {registerOf<T>(), registerOf<T>(), registerOf<T>()}, valuesOf<T>(),
             [](const Column &row) { return word(static_cast<T>(row[0] * row[1] + row[2])); });
}

// A wide product has all its bits.
TEST(WideProductTest, HasAllBits) {
  expectEach("mul.wide.u32 %d, %a, %b;", "b64", {"b32", "b32"}, words32,
             [](const Column &row) { return uint64_t{as<uint32_t>(row[0])} * as<uint32_t>(row[1]); });
  expectEach("mul.wide.s32 %d, %a, %b;", "b64", {"b32", "b32"}, words32,
             [](const Column &row) { return word(int64_t{as<int32_t>(row[0])} * as<int32_t>(row[1])); });
  expectEach("mul.wide.s16 %d, %a, %b;", "b32", {"b16", "b16"}, words16,
             [](const Column &row) { return word(int32_t{as<int16_t>(row[0])} * as<int16_t>(row[1])); });
}

// A saturating sum stops at the ends.
TEST(SaturatingSumTest, StopsAtTheEnds) {
  for (const bool subtract : {false, true})
    expectEach(std::string(subtract ? "sub" : "add") + ".sat.s32 %d, %a, %b;", "b32", {"b32", "b32"}, words32,
               [&](const Column &row) {
                 const int64_t a = as<int32_t>(row[0]), b = as<int32_t>(row[1]);
                 return word(static_cast<int32_t>(std::clamp<int64_t>(subtract ? a - b : a + b, INT32_MIN, INT32_MAX)));
               });
}

// Sums with carry form a wide sum from two narrow ones, and differences with borrow a wide difference.
TEST(CarryTest, JoinsTwoWords) {
  const std::string split = "{ .reg .b32 %l<2>, %h<2>, %s<2>;\nmov.b64 {%l0, %h0}, %a;\nmov.b64 {%l1, %h1}, %b;\n";
  expectEach(split + "add.cc.u32 %s0, %l0, %l1;\naddc.u32 %s1, %h0, %h1;\nmov.b64 %d, {%s0, %s1}; }", "b64",
             {"b64", "b64"}, words64, [](const Column &row) { return row[0] + row[1]; });
  expectEach(split + "sub.cc.u32 %s0, %l0, %l1;\nsubc.u32 %s1, %h0, %h1;\nmov.b64 %d, {%s0, %s1}; }", "b64",
             {"b64", "b64"}, words64, [](const Column &row) { return row[0] - row[1]; });
}

// The carry of a difference is that of a + ~b + 1: 1 where nothing is borrowed. So ptxas has it, whichever instruction
// takes it.
TEST(CarryTest, OfADifference) {
  const auto expectCarry = [](const std::string &text, const std::function<uint64_t(bool below, bool carries)> &want) {
    expectEach("{ .reg .b32 %s;\n" + text + " }", "b32", {"b32", "b32"}, words32,
               [&](const Column &row) { return want(row[0] < row[1], row[0] + row[1] > 0xffffffff); });
  };
  expectCarry("sub.cc.u32 %s, %a, %b;\naddc.u32 %d, 0, 0;", [](bool below, bool) { return !below; });
  expectCarry("sub.cc.u32 %s, %a, %b;\nsubc.u32 %d, 0, 0;", [](bool below, bool) { return below ? 0xffffffff : 0; });
  expectCarry("add.cc.u32 %s, %a, %b;\nsubc.u32 %d, 0, 0;",
              [](bool, bool carries) { return carries ? 0 : 0xffffffff; });
  expectCarry("sub.cc.u32 %s, %a, %b;\nmadc.lo.u32 %d, 3, 5, 0;", [](bool below, bool) { return below ? 15 : 16; });
  expectCarry("mad.lo.cc.u32 %s, %a, 1, %b;\nsubc.u32 %d, 7, 0;", [](bool, bool carries) { return carries ? 7 : 6; });
  expectEach("{ .reg .b64 %s;\nsub.cc.u64 %s, %a, %b;\naddc.cc.u64 %s, -1, 0;\naddc.u64 %d, 0, 0; }", "b64",
             {"b64", "b64"}, words64, [](const Column &row) { return row[0] >= row[1]; });
}

// The high half of a product of two words of 64 bits, in parts of 32 bits.
TEST(CarryTest, OfProducts) {
  expectEach("{ .reg .b32 %l<2>, %h<2>, %s<3>;\nmov.b64 {%l0, %h0}, %a;\nmov.b64 {%l1, %h1}, %b;\n"
             "mul.hi.u32 %s0, %l0, %l1;\nmad.lo.cc.u32 %s0, %l0, %h1, %s0;\nmadc.hi.u32 %s1, %l0, %h1, 0;\n"
             "mad.lo.cc.u32 %s0, %h0, %l1, %s0;\nmadc.hi.cc.u32 %s1, %h0, %l1, %s1;\naddc.u32 %s2, 0, 0;\n"
             "mad.lo.cc.u32 %s1, %h0, %h1, %s1;\nmadc.hi.u32 %s2, %h0, %h1, %s2;\nmov.b64 %d, {%s1, %s2}; }",
             "b64", {"b64", "b64"}, words64, [](const Column &row) {
               return static_cast<uint64_t>(static_cast<unsigned __int128>(row[0]) * row[1] >> 64);
             });
}

// --- Products of 24 bits --------------------------------------------------------------------------------------------

/// A word's lowest 24 bits as a number.
static int64_t low24(uint64_t word, bool isSigned) {
  const auto low = static_cast<int64_t>(word & 0xffffff);
  return isSigned && low >> 23 ? low - (1 << 24) : low;
}

static int64_t sum(const Column &row, bool isSigned, int from) {
  const auto product = low24(row[0], isSigned) * low24(row[1], isSigned) >> from;
  const auto part = static_cast<uint32_t>(static_cast<uint64_t>(product));
  const int64_t number = isSigned ? int64_t{static_cast<int32_t>(part)} : int64_t{part};
  if (row.size() == 2)
    return number;
  return number + (isSigned ? int64_t{static_cast<int32_t>(row[2])} : static_cast<int64_t>(row[2]));
}

static uint64_t word(int64_t value) { return static_cast<uint32_t>(static_cast<uint64_t>(value)); }

// The low part is bits 0 to 31 of the product, the high part bits 16 to 47; sums wrap.
TEST(Product24Test, LowAndHighParts) {
  for (const bool isSigned : {false, true})
    for (const int from : {0, 16}) {
      const std::string modifiers = fmt::format("{}.{}", from ? "hi" : "lo", isSigned ? "s32" : "u32");
      const auto want = [&](const Column &row) { return word(sum(row, isSigned, from)); };
      expectEach(fmt::format("mul24.{} %d, %a, %b;", modifiers), "b32", {"b32", "b32"}, words32, want);
      expectEach(fmt::format("mad24.{} %d, %a, %b, %c;", modifiers), "b32", {"b32", "b32", "b32"}, words32, want);
    }
}

// A saturating sum stops at the ends.
TEST(Product24Test, SumsSaturate) {
  expectEach("mad24.hi.sat.s32 %d, %a, %b, %c;", "b32", {"b32", "b32", "b32"}, words32,
             [](const Column &row) { return word(std::clamp<int64_t>(sum(row, true, 16), INT32_MIN, INT32_MAX)); });
}

// --- Instructions on bits, against loops over bits -------------------------------------------------------------------

// A shift by the width or more gives 0, or the sign; the amount is unsigned.
TEST(ShiftTest, AmountsAreNotTakenModuloTheWidth) {
  expectEach("shl.b32 %d, %a, %b;", "b32", {"b32", "b32"}, words32,
             [](const Column &row) { return row[1] > 31 ? 0 : row[0] << row[1] & 0xffffffff; });
  expectEach("shr.u32 %d, %a, %b;", "b32", {"b32", "b32"}, words32,
             [](const Column &row) { return row[1] > 31 ? 0 : row[0] >> row[1]; });
  expectEach("shr.s32 %d, %a, %b;", "b32", {"b32", "b32"}, words32, [](const Column &row) {
    return static_cast<uint32_t>(static_cast<int32_t>(row[0]) >> std::min<uint64_t>(row[1], 31));
  });
}

// The table of lop3 is indexed by the bits of a, b and c, a's highest.
TEST(LogicTest, TableOfThreeOperands) {
  for (const unsigned table : {0x80u, 0xfeu, 0x96u, 0xe8u, 0x1fu})
    expectEach(fmt::format("lop3.b32 %d, %a, %b, %c, {};", table), "b32", {"b32", "b32", "b32"}, words32,
               [&](const Column &row) {
                 uint64_t result = 0;
                 for (int bit = 0; bit < 32; ++bit)
                   result |=
                       uint64_t{table >> ((row[0] >> bit & 1) * 4 + (row[1] >> bit & 1) * 2 + (row[2] >> bit & 1)) & 1}
                       << bit;
                 return result;
               });
}

// With .or or .and, lop3 also joins a predicate with whether its result has a bit.
TEST(LogicTest, TableJoinsAPredicate) {
  for (const std::string join : {"or", "and"})
    for (const std::string negation : {"", "!"})
      expectEach("{ .reg .b32 %x; lop3." + join + ".b32 %x|%d, %a, %b, 0, 0xc0, " + negation + "%c; }", "pred",
                 {"b32", "b32", "pred"}, {0, 1, 2, 3}, [&](const Column &row) {
                   const bool has = row[0] & row[1], other = (row[2] != 0) == negation.empty();
                   return join == "or" ? has || other : has && other;
                 });
}

// bfe extracts `length` bits from `start` on; a signed field is sign-extended, an empty one is 0.
TEST(FieldTest, ExtractsAndExtends) {
  const Column values = {0, 1, 4, 8, 31, 32, 40, 255, 0x80000000, 0xffffffff, 0x12345678, 0x00ff0080};
  for (const bool isSigned : {false, true})
    expectEach(fmt::format("bfe.{}32 %d, %a, %b, %c;", isSigned ? 's' : 'u'), "b32", {"b32", "b32", "b32"}, values,
               [&](const Column &row) {
                 const uint64_t start = row[1] & 255, length = row[2] & 255;
                 const uint64_t top = std::min<uint64_t>(start + length - 1, 31);
                 const bool sign = isSigned && length != 0 && (row[0] >> top & 1);
                 uint64_t result = 0;
                 for (uint64_t bit = 0; bit < 32; ++bit) {
                   const bool inside = bit < length && start + bit <= 31;
                   result |= static_cast<uint64_t>(inside ? row[0] >> (start + bit) & 1 : sign) << bit;
                 }
                 return result;
               });
}

// bfi puts the low bits of a into b.
TEST(FieldTest, Inserts) {
  const Column values = {0, 1, 4, 8, 31, 32, 0xffffffff, 0x12345678};
  expectEach("bfi.b32 %d, %a, %b, %c, 5;", "b32", {"b32", "b32", "b32"}, values, [](const Column &row) {
    uint64_t result = row[1];
    for (uint64_t bit = 0; bit < 5; ++bit)
      if (const uint64_t at = (row[2] & 255) + bit; at < 32)
        result = (result & ~(uint64_t{1} << at)) | (row[0] >> bit & 1) << at;
    return result;
  });
}

// Counts of bits, and the position of the highest that differs from the sign.
TEST(CountTest, CountsBits) {
  expectEach("popc.b32 %d, %a;", "b32", {"b32"}, words32, [](const Column &row) { return std::popcount(row[0]); });
  expectEach("clz.b32 %d, %a;", "b32", {"b32"}, words32,
             [](const Column &row) { return std::countl_zero(static_cast<uint32_t>(row[0])); });
  expectEach("clz.b64 %d, %a;", "b32", {"b64"}, words64, [](const Column &row) { return std::countl_zero(row[0]); });
  expectEach("bfind.s32 %d, %a;", "b32", {"b32"}, words32, [](const Column &row) {
    const auto value = static_cast<int32_t>(row[0]);
    for (int bit = 30; bit >= 0; --bit)
      if ((value >> bit & 1) != (value < 0))
        return static_cast<uint64_t>(bit);
    return uint64_t{0xffffffff};
  });
}

// brev reverses the word.
TEST(CountTest, ReversesBits) {
  expectEach("brev.b32 %d, %a;", "b32", {"b32"}, words32, [](const Column &row) {
    uint64_t result = 0;
    for (int bit = 0; bit < 32; ++bit)
      result |= (row[0] >> bit & 1) << (31 - bit);
    return result;
  });
}

// prmt selects bytes of {b, a}; a selector's fourth bit selects copies of the byte's sign.
TEST(PermuteTest, PicksBytesAndSigns) {
  const Column values = {0x12345678, 0x80ff7f01, 0x3210, 0x7654, 0xba98, 0xfedc, 0x5140};
  expectEach("prmt.b32 %d, %a, %b, %c;", "b32", {"b32", "b32", "b32"}, values, [](const Column &row) {
    const uint64_t bytes = row[1] << 32 | row[0];
    uint64_t result = 0;
    for (int i = 0; i < 4; ++i) {
      const uint64_t selector = row[2] >> (4 * i) & 15, byte = bytes >> (8 * (selector & 7)) & 255;
      result |= (selector & 8 ? (byte & 128 ? 255 : 0) : byte) << (8 * i);
    }
    return result;
  });
}

/// So many ones from the lowest bit on.
static uint64_t ones(uint64_t count) { return count >= 32 ? 0xffffffff : (uint64_t{1} << count) - 1; }

// bmsk sets ones from a bit on, as many as requested and as the word can hold; `.wrap` takes both modulo 32.
TEST(MaskTest, OnesFromABitOn) {
  expectEach("bmsk.clamp.b32 %d, %a, %b;", "b32", {"b32", "b32"}, words32,
             [](const Column &row) { return row[0] >= 32 ? 0 : ones(row[1]) << row[0] & 0xffffffff; });
  expectEach("bmsk.wrap.b32 %d, %a, %b;", "b32", {"b32", "b32"}, words32,
             [](const Column &row) { return ones(row[1] % 32) << row[0] % 32 & 0xffffffff; });
}

// szext keeps the lowest bits, and copies the highest of them where the type has a sign.
TEST(MaskTest, Extensions) {
  for (const bool isSigned : {false, true})
    for (const bool clamps : {false, true})
      expectEach(fmt::format("szext.{}.{} %d, %a, %b;", clamps ? "clamp" : "wrap", isSigned ? "s32" : "u32"), "b32",
                 {"b32", "b32"}, words32, [&](const Column &row) {
                   const uint64_t count = clamps ? std::min<uint64_t>(row[1], 32) : row[1] % 32;
                   const uint64_t low = row[0] & ones(count);
                   return isSigned && count && low >> (count - 1) ? (low | ~ones(count)) & 0xffffffff : low;
                 });
}

/// fns by its definition: the n-th one of a mask from `base` on.
static uint64_t nth(uint64_t mask, int64_t base, int64_t n) {
  if (n == 0)
    return mask >> base & 1 ? static_cast<uint64_t>(base) : 0xffffffff;
  for (int64_t left = std::abs(n) - 1; base >= 0 && base < 32; base += n > 0 ? 1 : -1)
    if (mask >> base & 1 && left-- == 0)
      return static_cast<uint64_t>(base);
  return 0xffffffff;
}

// fns searches up or down from a bit for the n-th one of the mask; 0 selects the bit itself.
TEST(MaskTest, NthOne) {
  std::vector<Column> operands(3);
  for (const uint64_t mask : {0x0u, 0xb0u, 0x80000001u, 0xffffffffu, 0x12345678u})
    for (const uint64_t base : {0, 4, 5, 6, 19, 31})
      for (const int n : {0, 1, 2, 3, 4, 9, -1, -2, -3, -9}) {
        operands[0].push_back(mask);
        operands[1].push_back(base);
        operands[2].push_back(static_cast<uint32_t>(n));
      }
  const Column got = evaluate("fns.b32 %d, %a, %b, %c;", "b32", {"b32", "b32", "b32"}, operands);
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(got[i], nth(operands[0][i], static_cast<int64_t>(operands[1][i]), static_cast<int32_t>(operands[2][i])))
        << operands[0][i] << " " << operands[1][i] << " " << operands[2][i];
  EXPECT_EQ(evaluate("fns.b32 %d, %a, %b, %c;", "b32", {"b32", "b32", "b32"}, {{0xffffffff}, {0}, {0x80000000}},
                     "an H100 gives 0 there, against the ISA's definition")[0],
            0xffffffff);
}

// The driver's environment registers are 0.
TEST(EnvironmentTest, RegistersAreZero) {
  expectEach("mov.u32 %d, %envreg3;", "b32", {"b32"}, {1}, [](const Column &) { return 0; });
}

// A funnel shift extracts 32 bits of {b, a}; `.wrap` takes the amount modulo 32, `.clamp` limits it to 32.
TEST(FunnelTest, ShiftsAPair) {
  expectEach("shf.l.wrap.b32 %d, %a, %b, %c;", "b32", {"b32", "b32", "b32"}, words32,
             [](const Column &row) { return (row[1] << 32 | row[0]) << (row[2] & 31) >> 32 & 0xffffffff; });
  expectEach("shf.r.clamp.b32 %d, %a, %b, %c;", "b32", {"b32", "b32", "b32"}, words32,
             [](const Column &row) { return (row[1] << 32 | row[0]) >> std::min<uint64_t>(row[2], 32) & 0xffffffff; });
}

} // namespace kiln::simulator::test
