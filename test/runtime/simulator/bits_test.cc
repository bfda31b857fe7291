// Instructions on bits, against loops over bits.

#include "test/runtime/simulator/machine.h"

#include <bit>
#include <fmt/format.h>

namespace kiln::simulator::test {

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
