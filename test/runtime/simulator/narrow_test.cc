// 16-bit numbers with PTX's modifiers, alone and in pairs: rows of operands and the ISA's result.

#include "test/runtime/simulator/machine.h"

#include <bit>
#include <cmath>
#include <fmt/format.h>

namespace kiln::simulator::test {

/// Operands of an instruction, followed by its result.
using Row = std::vector<uint64_t>;

/// Runs the instruction on every row; registers are of `type`.
static void expectRows(const std::string &instruction, const std::string &type, const std::vector<Row> &rows) {
  std::vector<Column> columns(rows[0].size());
  for (const Row &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      columns[i].push_back(row[i]);
  const Column want = columns.back();
  columns.pop_back();
  const Column got = evaluate(instruction, type, std::vector(columns.size(), type), columns);
  for (size_t i = 0; i < rows.size(); ++i)
    EXPECT_EQ(got[i], want[i]) << fmt::format("{} in row {}: got {:#x}, want {:#x}", instruction, i, got[i], want[i]);
}

// Halves: 1 = 0x3c00, 2 = 0x4000, 3 = 0x4200, 6 = 0x4600, infinity = 0x7c00; bf16: 1 = 0x3f80, 2 = 0x4000, 3 = 0x4040,
// 6 = 0x40c0, infinity = 0x7f80. The NaN that instructions make is 0x7fff.

// fma with .relu: a negative sum is 0, NaN stays NaN.
TEST(NarrowTest, FmaClampsBelowZero) {
  expectRows("fma.rn.relu.f16 %d, %a, %b, %c;", "b16",
             {{0x4000, 0x4200, 0x3c00, 0x4700},   // 2 · 3 + 1 = 7
              {0xc000, 0x4200, 0x3c00, 0},        // −2 · 3 + 1 = −5
              {0xc000, 0x4200, 0x7c00, 0x7c00},   // + ∞
              {0xc000, 0x7c00, 0x3c00, 0},        // −∞
              {0x7c00, 0x3c00, 0xfc00, 0x7fff}}); // ∞ − ∞
  expectRows("fma.rn.relu.bf16 %d, %a, %b, %c;", "b16",
             {{0x4000, 0x4040, 0x3f80, 0x40e0}, {0xc000, 0x4040, 0x3f80, 0}, {0x7f80, 0x3f80, 0xff80, 0x7fff}});
  expectRows("fma.rn.relu.f16x2 %d, %a, %b, %c;", "b32",
             {{0x4000c000, 0x42004200, 0x3c003c00, 0x47000000}, {0xc0004000, 0x42004200, 0x3c003c00, 0x00004700}});
  expectRows("fma.rn.relu.bf16x2 %d, %a, %b, %c;", "b32", {{0x4000c000, 0x40404040, 0x3f803f80, 0x40e00000}});
}

// .xorsign.abs: the extremum of the magnitudes, negative when one operand alone is; NaN loses, or wins with .NaN.
TEST(NarrowTest, ExtremaOfMagnitudes) {
  expectRows("min.xorsign.abs.f16 %d, %a, %b;", "b16",
             {{0x4000, 0xc200, 0xc000},   // 2, −3
              {0xc000, 0xc200, 0x4000},   // −2, −3
              {0xbc00, 0x4000, 0xbc00},   // −1, 2
              {0x8000, 0x3c00, 0x8000},   // −0, 1
              {0xbc00, 0x7fff, 0xbc00}}); // −1, NaN
  expectRows("max.xorsign.abs.f16 %d, %a, %b;", "b16", {{0x4000, 0xc200, 0xc200}, {0xc000, 0xc200, 0x4200}});
  expectRows("min.xorsign.abs.bf16x2 %d, %a, %b;", "b32", {{0x4000c000, 0xc040c040, 0xc0004000}});
  expectRows("max.NaN.xorsign.abs.f16 %d, %a, %b;", "b16", {{0x7fff, 0xbc00, 0x7fff}, {0x3c00, 0xbc00, 0xbc00}});
  expectRows("min.xorsign.abs.f32 %d, %a, %b;", "b32", {{0x40000000, 0xc0400000, 0xc0000000}}); // 2, −3
}

// Signs of denormal halves: .ftz makes them zeros first.
TEST(NarrowTest, SignsFlush) {
  expectRows("neg.f16 %d, %a;", "b16", {{0x0001, 0x8001}, {0x3c00, 0xbc00}});
  expectRows("neg.ftz.f16 %d, %a;", "b16", {{0x0001, 0x8000}, {0x8001, 0x0000}, {0x3c00, 0xbc00}});
  expectRows("abs.ftz.f16x2 %d, %a;", "b32", {{0x8001bc00, 0x00003c00}});
}

// Pairs of integers: each half wraps and compares alone, by its type's sign.
TEST(NarrowTest, PairsOfIntegers) {
  expectRows("add.u16x2 %d, %a, %b;", "b32", {{0xffff0001, 0x00020003, 0x00010004}});
  expectRows("add.s16x2 %d, %a, %b;", "b32", {{0x7fffffff, 0x00010001, 0x80000000}});
  expectRows("min.u16x2 %d, %a, %b;", "b32", {{0xffff0001, 0x00028000, 0x00020001}});
  expectRows("min.s16x2 %d, %a, %b;", "b32", {{0xffff0001, 0x00028000, 0xffff8000}});
  expectRows("max.u16x2 %d, %a, %b;", "b32", {{0xffff0001, 0x00028000, 0xffff8000}});
  expectRows("max.s16x2 %d, %a, %b;", "b32", {{0xffff0001, 0x00028000, 0x00020001}});
}

// .relu on integers: not below 0.
TEST(NarrowTest, ExtremaOfIntegersClampBelowZero) {
  expectRows("min.relu.s32 %d, %a, %b;", "b32", {{5, 7, 5}, {5, 0xfffffffe, 0}});
  expectRows("max.relu.s32 %d, %a, %b;", "b32", {{0xfffffffd, 0xfffffffe, 0}, {5, 0xfffffffe, 5}});
  expectRows("min.relu.s16x2 %d, %a, %b;", "b32", {{0x0005ffff, 0x00070001, 0x00050000}});
  expectRows("max.relu.s16x2 %d, %a, %b;", "b32", {{0x8000ffff, 0xffff0001, 0x00000001}});
}

/// The value of an f16 or a bf16, by its definition.
static double numberOf(bool isBf16, uint64_t bits) {
  const int mantissaBits = isBf16 ? 7 : 10, bias = isBf16 ? 127 : 15;
  const double sign = bits >> 15 & 1 ? -1 : 1, mantissa = static_cast<double>(bits & ((1 << mantissaBits) - 1));
  const int exponent = static_cast<int>(bits >> mantissaBits & (2 * bias + 1));
  if (exponent == 2 * bias + 1)
    return mantissa != 0 ? NAN : sign * INFINITY;
  const double whole = exponent ? mantissa + (1 << mantissaBits) : mantissa;
  return sign * std::ldexp(whole, std::max(exponent, 1) - bias - mantissaBits);
}

// Narrow operands of f32 operations are widened, which is exact. The sum rounds once, like a fused multiply-add in f32.
TEST(NarrowTest, MixedSumsRoundOnce) {
  const Column halves = {0x0000, 0x8000, 0x0001, 0x83ff, 0x3c00, 0x3f80,
                         0xc049, 0x42f7, 0x7bff, 0x7c00, 0xff80, 0x7fc1};
  Column a, b, c;
  for (const uint64_t x : halves)
    for (const uint64_t y : halves)
      for (const uint64_t z : floats32)
        a.push_back(x), b.push_back(y), c.push_back(z);
  const auto single = [](uint64_t word) { return std::bit_cast<float>(static_cast<uint32_t>(word)); };
  for (const bool isBf16 : {false, true}) {
    const std::string type = isBf16 ? "bf16" : "f16";
    const Column sums = evaluate("add.rn.f32." + type + " %d, %a, %b;", "b32", {"b16", "b32"}, {a, c}),
                 differences = evaluate("sub.f32." + type + " %d, %a, %b;", "b32", {"b16", "b32"}, {a, c}),
                 clamped = evaluate("add.sat.f32." + type + " %d, %a, %b;", "b32", {"b16", "b32"}, {a, c}),
                 fused = evaluate("fma.rn.f32." + type + " %d, %a, %b, %c;", "b32", {"b16", "b16", "b32"}, {a, b, c});
    for (size_t i = 0; i < a.size(); ++i) {
      const auto x = static_cast<float>(numberOf(isBf16, a[i])), y = static_cast<float>(numberOf(isBf16, b[i])),
                 z = single(c[i]), sum = x + z;
      const auto expect = [&](uint64_t got, float want) {
        EXPECT_TRUE(sameFloat(got, std::bit_cast<uint32_t>(want))) << type << ": " << x << ", " << y << ", " << z;
      };
      expect(sums[i], sum);
      expect(differences[i], x - z);
      expect(clamped[i], std::isnan(sum) || sum <= 0 ? 0.0f : std::min(sum, 1.0f));
      expect(fused[i], std::fma(x, y, z));
    }
  }
}

// Instructions that PTX does not have are refused.
TEST(NarrowTest, RefusesModifiersOfOtherTypes) {
  for (const std::string instruction :
       {"fma.rn.relu.f32 %r, %r, %r, %r;", "min.relu.u32 %r, %r, %r;", "min.xorsign.f32 %r, %r, %r;",
        "min.xorsign.abs.s32 %r, %r, %r;", "add.sat.u32 %r, %r, %r;", "sub.u16x2 %r, %r, %r;", "div.s16x2 %r, %r, %r;",
        "mul.f32.bf16 %r, %r, %r;", "add.ftz.f32.f16 %r, %r, %r;", "fma.rn.f32.f64 %r, %r, %r, %r;",
        "add.f64.f16 %r, %r, %r;"}) {
    Machine machine(kernel(1, ".reg .b32 %r;", "mov.b32 %r, 0;\n" + instruction));
    EXPECT_THROW(machine.run("k", {1, 1, 1}, {1, 1, 1}, {0}), Error) << instruction;
  }
}

} // namespace kiln::simulator::test
