// Integer arithmetic, bit by bit against C++, at the ends of every type.

#include "test/runtime/simulator/machine.h"

#include <algorithm>
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

} // namespace kiln::simulator::test
