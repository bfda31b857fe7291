// Floating-point arithmetic compared with C++ on the same numbers: round-to-nearest with operators, other modes by
// enclosing the exact result, which a wider type holds.

#include "runtime/simulator/Numbers.h"
#include "test/runtime/simulator/machine.h"

#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <set>

namespace kiln::simulator::test {

static float single(uint64_t word) { return std::bit_cast<float>(static_cast<uint32_t>(word)); }
static double real(uint64_t word) { return std::bit_cast<double>(word); }
static uint64_t word(float value) { return std::bit_cast<uint32_t>(value); }
static uint64_t word(double value) { return std::bit_cast<uint64_t>(value); }
static float flush(float value) { return std::fabs(value) < 0x1p-126f ? std::copysign(0.0f, value) : value; }

// Sums, products and quotients to nearest are C++'s, denormals and all.
TEST(FloatTest, NearestIsTheDefault) {
  expectEach(
      "add.f32 %d, %a, %b;", "b32", {"b32", "b32"}, floats32,
      [](const Column &r) { return word(single(r[0]) + single(r[1])); }, sameFloat);
  expectEach(
      "sub.rn.f32 %d, %a, %b;", "b32", {"b32", "b32"}, floats32,
      [](const Column &r) { return word(single(r[0]) - single(r[1])); }, sameFloat);
  expectEach(
      "mul.f32 %d, %a, %b;", "b32", {"b32", "b32"}, floats32,
      [](const Column &r) { return word(single(r[0]) * single(r[1])); }, sameFloat);
  expectEach(
      "div.rn.f32 %d, %a, %b;", "b32", {"b32", "b32"}, floats32,
      [](const Column &r) { return word(single(r[0]) / single(r[1])); }, sameFloat);
  expectEach(
      "add.f64 %d, %a, %b;", "b64", {"b64", "b64"}, floats64,
      [](const Column &r) { return word(real(r[0]) + real(r[1])); }, sameDouble);
  expectEach(
      "div.rn.f64 %d, %a, %b;", "b64", {"b64", "b64"}, floats64,
      [](const Column &r) { return word(real(r[0]) / real(r[1])); }, sameDouble);
}

// fma rounds once.
TEST(FloatTest, FusedMultiplyAddRoundsOnce) {
  expectEach(
      "fma.rn.f32 %d, %a, %b, %c;", "b32", {"b32", "b32", "b32"}, floats32,
      [](const Column &r) { return word(std::fma(single(r[0]), single(r[1]), single(r[2]))); }, sameFloat);
}

// `.ftz` takes denormal operands and results as zeros of their sign.
TEST(FloatTest, FlushesDenormals) {
  expectEach(
      "mul.ftz.f32 %d, %a, %b;", "b32", {"b32", "b32"}, floats32,
      [](const Column &r) { return word(flush(flush(single(r[0])) * flush(single(r[1])))); }, sameFloat);
}

// `.sat` clamps to [0, 1], and NaN gives 0.
TEST(FloatTest, Saturates) {
  expectEach("add.sat.f32 %d, %a, %b;", "b32", {"b32", "b32"}, floats32, [](const Column &r) {
    const float sum = single(r[0]) + single(r[1]);
    return word(std::isnan(sum) || sum <= 0 ? 0.0f : std::min(sum, 1.0f));
  });
}

// Rounding towards zero, down and up: a double holds the exact sum of two f32 of similar magnitude, and the result is
// its neighbour in the rounding direction.
TEST(FloatTest, RoundsInEveryMode) {
  const Column near = {word(1.0f),        word(-1.0f),      word(0.1f),  word(3.0f),
                       word(16777217.0f), word(1.0000001f), word(-0.3f), word(1e-7f)};
  for (const std::string mode : {"rz", "rm", "rp"})
    for (const bool multiply : {false, true})
      expectEach(fmt::format("{}.{}.f32 %d, %a, %b;", multiply ? "mul" : "add", mode), "b32", {"b32", "b32"}, near,
                 [&](const Column &r) {
                   const double exact =
                       multiply ? double{single(r[0])} * single(r[1]) : double{single(r[0])} + single(r[1]);
                   auto result = static_cast<float>(exact);
                   const bool down = mode == "rm" || (mode == "rz" && exact > 0);
                   if (down && result > exact)
                     result = std::nextafter(result, -INFINITY);
                   if (!down && result < exact)
                     result = std::nextafter(result, INFINITY);
                   return word(result == 0 ? (mode == "rm" && !multiply ? -0.0f : 0.0f) : result);
                 });
}

// Extrema pass NaN over unless both are NaN; +0 is above −0; `.NaN` keeps it.
TEST(FloatTest, ExtremaOfNaN) {
  expectEach(
      "max.f32 %d, %a, %b;", "b32", {"b32", "b32"}, floats32,
      [](const Column &r) {
        const float a = single(r[0]), b = single(r[1]);
        if (a == 0 && b == 0)
          return word(std::signbit(a) && std::signbit(b) ? -0.0f : 0.0f);
        return word(std::fmax(a, b));
      },
      sameFloat);
  expectEach(
      "min.NaN.f32 %d, %a, %b;", "b32", {"b32", "b32"}, floats32,
      [](const Column &r) {
        const float a = single(r[0]), b = single(r[1]);
        if (std::isnan(a) || std::isnan(b))
          return word(NAN);
        if (a == 0 && b == 0)
          return word(std::signbit(a) || std::signbit(b) ? -0.0f : 0.0f);
        return word(std::fmin(a, b));
      },
      sameFloat);
}

// f32 instructions of NVIDIA's GPUs return a single NaN, for all operands.
static constexpr uint64_t madeNaN = 0x7fffffff;

// Every f32 operation makes it, also of NaNs with signs and payloads.
TEST(FloatTest, MakesOneNaN) {
  const Column words = {word(INFINITY), word(-INFINITY), word(0.0f), 0x7fc00000, 0xffc00001, 0x7f800001, 0x7fffffff};
  for (const std::string instruction :
       {"add.f32", "sub.f32", "mul.f32", "div.rn.f32", "add.rz.f32", "mul.ftz.f32", "min.f32", "max.NaN.f32"})
    expectEach(
        instruction + " %d, %a, %b;", "b32", {"b32", "b32"}, words, [](const Column &) { return madeNaN; },
        [](uint64_t got, uint64_t want) { return !std::isnan(single(got)) || got == want; });
  for (const std::string instruction : {"neg.f32", "abs.f32", "neg.ftz.f32", "sqrt.rn.f32", "rcp.rn.f32"})
    expectEach(
        instruction + " %d, %a;", "b32", {"b32"}, words, [](const Column &) { return madeNaN; },
        [](uint64_t got, uint64_t want) { return !std::isnan(single(got)) || got == want; });
  expectEach(
      "fma.rn.f32 %d, %a, %b, %c;", "b32", {"b32", "b32", "b32"}, words, [](const Column &) { return madeNaN; },
      [](uint64_t got, uint64_t want) { return !std::isnan(single(got)) || got == want; });
}

// neg and abs change the sign's bit, also of zeros and infinities; NaN gives the NaN that is made.
TEST(FloatTest, SignsAreBits) {
  const auto made = [](uint64_t bits) { return std::isnan(single(bits)) ? madeNaN : bits; };
  expectEach("neg.f32 %d, %a;", "b32", {"b32"}, floats32, [&](const Column &r) { return made(r[0] ^ 0x80000000); });
  expectEach("abs.f32 %d, %a;", "b32", {"b32"}, floats32, [&](const Column &r) { return made(r[0] & 0x7fffffff); });
  expectEach("copysign.f32 %d, %a, %b;", "b32", {"b32", "b32"}, floats32,
             [](const Column &r) { return (r[0] & 0x80000000) | (r[1] & 0x7fffffff); });
}

// Halves: sums and products are exact in double and rounded once. 65504 is the largest, 2^-24 the smallest.
TEST(HalfTest, RoundsOnce) {
  const Column halves = {0x0000, 0x8000, 0x3c00, 0xbc00, 0x0001, 0x03ff, 0x0400,
                         0x7bff, 0x3555, 0x4248, 0x7c00, 0xfc00, 0x1401};
  const auto value = [](uint64_t bits) {
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    const double magnitude = exponent == 31 ? INFINITY
                             : exponent     ? std::ldexp(1024 + mantissa, exponent - 25)
                                            : std::ldexp(mantissa, -24);
    return bits & 0x8000 ? -magnitude : magnitude;
  };
  const auto nearest = [&](double exact) -> uint64_t {
    if (std::isnan(exact))
      return 0x7fff;
    const uint64_t sign = std::signbit(exact) ? 0x8000 : 0;
    uint64_t best = 0x7c00;
    if (std::fabs(exact) < 65520) { // half way from the largest to what would follow it
      best = 0;
      for (uint64_t bits = 0; bits < 0x7c00; ++bits) {
        const double distance = std::fabs(value(bits) - std::fabs(exact)),
                     least = std::fabs(value(best) - std::fabs(exact));
        if (distance < least || (distance == least && bits % 2 == 0))
          best = bits;
      }
    }
    return sign | best;
  };
  const auto sameHalf = [](uint64_t got, uint64_t want) {
    return got == want || ((got & 0x7fff) > 0x7c00 && (want & 0x7fff) > 0x7c00);
  };
  expectEach(
      "add.rn.f16 %d, %a, %b;", "b16", {"b16", "b16"}, halves,
      [&](const Column &r) { return nearest(value(r[0]) + value(r[1])); }, sameHalf);
  expectEach(
      "mul.rn.f16 %d, %a, %b;", "b16", {"b16", "b16"}, halves,
      [&](const Column &r) { return nearest(value(r[0]) * value(r[1])); }, sameHalf);
  expectEach(
      "fma.rn.f16 %d, %a, %b, %c;", "b16", {"b16", "b16", "b16"}, Column(halves.begin(), halves.begin() + 8),
      [&](const Column &r) { return nearest(value(r[0]) * value(r[1]) + value(r[2])); }, sameHalf);
}

// A product half-way between two bf16 is rounded by the sign of the addend, however small that is.
TEST(HalfTest, FusedSumsAreRoundedOnce) {
  constexpr uint64_t factor = 0x3f88; // its square, 1.125 + 2⁻⁸, lies between 0x3f90 and 0x3f91
  expectEach("{ .reg .b16 %f; mov.b16 %f, 0x3f88; fma.rn.bf16 %d, %f, %f, %a; }", "b16", {"b16"},
             {0, 0x0d80, 0x8d80, 0x0001, 0x8001}, // 0, ± 2⁻¹⁰⁰, and the smallest ones
             [](const Column &r) { return r[0] != 0 && r[0] < 0x8000 ? 0x3f91 : 0x3f90; });
  expectEach("{ .reg .b16 %f, %g; mov.b16 %f, 0xbf88; mov.b16 %g, 0x8d80; fma.rn.bf16 %d, %f, %a, %g; }", "b16",
             {"b16"}, {factor}, [](const Column &) { return 0xbf91; });
}

// A packed operation has equal results in each half.
TEST(HalfTest, PackedHalvesAreIndependent) {
  expectEach("{ .reg .b32 %x, %y, %z; mov.b32 %x, {%a, %b}; mov.b32 %y, {%b, %a}; add.rn.f16x2 %z, %x, %y; mov.b32 "
             "{%d, _}, %z; }",
             "b16", {"b16", "b16"}, {0x3c00, 0x4000, 0x4200}, [](const Column &r) {
               const auto number = [](uint64_t bits) { return bits == 0x3c00 ? 1.0 : bits == 0x4000 ? 2.0 : 3.0; };
               const double sum = number(r[0]) + number(r[1]);
               return sum == 2 ? 0x4000 : sum == 3 ? 0x4200 : sum == 4 ? 0x4400 : sum == 5 ? 0x4500 : 0x4600;
             });
}

// Two f32 at once are computed as each alone.
TEST(FloatTest, PairsAreTwoNumbers) {
  for (const std::string op : {"add.rn", "sub.rz.ftz", "mul.rz", "mul.rp", "fma.rn", "fma.rm"}) {
    const size_t operands = op.starts_with("fma") ? 3 : 2;
    const std::string list = operands == 3 ? " %d, %a, %b, %c;" : " %d, %a, %b;";
    std::vector<Column> low = combinations(floats32, operands), high = low, both = low;
    for (size_t i = 0; i < operands; ++i) {
      std::ranges::reverse(high[i]);
      for (size_t row = 0; row < both[i].size(); ++row)
        both[i][row] |= high[i][row] << 32;
    }
    const Column got = evaluate(op + ".f32x2" + list, "b64", std::vector<std::string>(operands, "b64"), both);
    const std::vector<std::string> types(operands, "b32");
    const Column wantLow = evaluate(op + ".f32" + list, "b32", types, low),
                 wantHigh = evaluate(op + ".f32" + list, "b32", types, high);
    for (size_t row = 0; row < got.size(); ++row)
      ASSERT_EQ(got[row], wantHigh[row] << 32 | wantLow[row]) << op << " " << row;
  }
}

// Extrema of three; NaN as for two.
TEST(FloatTest, ExtremaOfThree) {
  const auto expectOfThree = [](const std::string &op, float (*of)(float, float)) {
    expectEach(
        op + ".f32 %d, %a, %b, %c;", "b32", {"b32", "b32", "b32"}, floats32,
        [&](const Column &r) { return word(of(of(single(r[0]), single(r[1])), single(r[2]))); },
        [](uint64_t got, uint64_t want) { return sameFloat(got, want) || single(got) == single(want); });
  };
  expectOfThree("min", [](float a, float b) { return std::fmin(a, b); });
  expectOfThree("max.NaN", [](float a, float b) { return std::isnan(a) || std::isnan(b) ? NAN : std::fmax(a, b); });
  expectOfThree("max.ftz.abs", [](float a, float b) {
    const auto size = [](float x) { return std::fabs(x) < 0x1p-126f ? 0 : std::fabs(x); };
    return std::fmax(size(a), size(b));
  });
}

// Square roots and reciprocals to nearest are IEEE's; approximate functions keep their exact cases.
TEST(FunctionTest, ExactCases) {
  expectEach(
      "sqrt.rn.f32 %d, %a;", "b32", {"b32"}, floats32, [](const Column &r) { return word(std::sqrt(single(r[0]))); },
      sameFloat);
  expectEach(
      "rcp.rn.f32 %d, %a;", "b32", {"b32"}, floats32, [](const Column &r) { return word(1 / single(r[0])); },
      sameFloat);
  expectEach("ex2.approx.f32 %d, %a;", "b32", {"b32"},
             {word(0.0f), word(3.0f), word(-2.0f), word(INFINITY), word(-INFINITY)},
             [](const Column &r) { return word(std::exp2(single(r[0]))); });
  expectEach("lg2.approx.f32 %d, %a;", "b32", {"b32"},
             {word(1.0f), word(8.0f), word(0.25f), word(0.0f), word(INFINITY)},
             [](const Column &r) { return word(std::log2(single(r[0]))); });
}

// Among powers and hyperbolic tangents of narrow floats, only the power of bf16 flushes denormals, always.
TEST(FunctionTest, NarrowFormsAreThoseOfTheIsa) {
  const auto runs = [](const std::string &instruction) {
    try {
      Machine machine(forFirstTarget(kernel(1, ".reg .b32 %a; .reg .b16 %h;", instruction)));
      machine.run("k", {1, 1, 1}, {32, 1, 1}, {reinterpret_cast<uint64_t>(machine.buffer<uint32_t>({0}))});
      return true;
    } catch (const Error &) {
      return false;
    }
  };
  for (const auto &[type, reg] :
       {std::pair<std::string, std::string>{"f16", "%h"}, {"f16x2", "%a"}, {"bf16", "%h"}, {"bf16x2", "%a"}}) {
    const bool isBf16 = type.starts_with("b");
    const std::string operands = "." + type + " " + reg + ", " + reg + ";";
    EXPECT_EQ(runs("ex2.approx" + operands), !isBf16) << type;
    EXPECT_EQ(runs("ex2.approx.ftz" + operands), isBf16) << type;
    EXPECT_TRUE(runs("tanh.approx" + operands)) << type;
    EXPECT_FALSE(runs("tanh.approx.ftz" + operands)) << type;
  }
}

// --- The error of approximate instructions --------------------------------------------------------------------------

// The error is within the requested bound, in both directions, and differs between inputs.
TEST(ApproximationTest, StaysWithinItsBound) {
  double least = 0, most = 0;
  for (uint64_t input = 0; input < 1000; ++input) {
    const double error = (withError(3, {0x1p-10}, 2, 7, input) - 3) / (2 * 3 * 0x1p-10);
    least = std::min(least, error);
    most = std::max(most, error);
  }
  EXPECT_GE(least, -1);
  EXPECT_LE(most, 1);
  EXPECT_LT(least, -0.9);
  EXPECT_GT(most, 0.9);
}

// Equal seeds and inputs give equal results; zeros, infinities and NaN are unchanged.
TEST(ApproximationTest, DependsOnSeedAndInput) {
  EXPECT_EQ(withError(3, {0x1p-10}, 1, 7, 5), withError(3, {0x1p-10}, 1, 7, 5));
  EXPECT_NE(withError(3, {0x1p-10}, 1, 7, 5), withError(3, {0x1p-10}, 1, 8, 5));
  EXPECT_EQ(withError(0, {0x1p-10, 1}, 1, 7, 5), 0);
  EXPECT_EQ(withError(HUGE_VAL, {0x1p-10}, 1, 7, 5), HUGE_VAL);
  EXPECT_TRUE(std::isnan(withError(NAN, {0x1p-10}, 1, 7, 5)));
}

/// The result of an instruction for 1.7 with an injected error of `times` times the bound.
static float resultOf(const std::string &instruction, int times, uint64_t seed) {
  Machine machine(
      kernel(1, ".reg .f32 %x, %y;", "mov.f32 %x, 0f3FD9999A;\n" + instruction + "\nst.global.f32 [%p0], %y;"));
  const float *out = machine.buffer<float>({0});
  machine.run("k", {1, 1, 1}, {1, 1, 1}, {reinterpret_cast<uint64_t>(out)}, 0, {.seed = seed, .errorTimes = times});
  EXPECT_EQ(machine.found(), std::vector<std::string>{});
  return *out;
}

// Approximate instructions have errors on request, and no others have.
TEST(ApproximationTest, OnlyApproximateInstructionsErr) {
  const auto errs = [](const std::string &instruction) {
    std::set<float> results;
    for (uint64_t seed = 0; seed < 8; ++seed) {
      EXPECT_EQ(resultOf(instruction, 0, seed), resultOf(instruction, 0, 0));
      results.insert(resultOf(instruction, 16, seed));
    }
    return results.size() > 1;
  };
  for (const char *name : {"ex2", "lg2", "sin", "cos", "rcp", "rsqrt", "sqrt", "tanh"})
    EXPECT_TRUE(errs(std::string(name) + ".approx.f32 %y, %x;")) << name;
  EXPECT_TRUE(errs("div.full.f32 %y, %x, 0f40400000;"));
  EXPECT_TRUE(errs("div.approx.f32 %y, %x, 0f40400000;"));
  EXPECT_FALSE(errs("div.rn.f32 %y, %x, 0f40400000;"));
  EXPECT_FALSE(errs("rcp.rn.f32 %y, %x;"));
  EXPECT_FALSE(errs("sqrt.rn.f32 %y, %x;"));
}

} // namespace kiln::simulator::test
