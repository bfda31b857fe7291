// The error of approximate instructions.

#include "runtime/simulator/Approximation.h"
#include "test/runtime/simulator/machine.h"

#include <bit>
#include <cmath>
#include <set>

namespace kiln::simulator::test {

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
