// How parameters begin, and which of them decay.

#include "models/nn/parameters.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

using namespace kiln;

namespace {

std::vector<float> begun(Init init, Shape shape) {
  ParameterList list;
  list.add("p", std::move(shape), init, Role::matrix);
  return firstNumbers(list[0], Random(3, Stream::weights), 1);
}

// Uniform numbers are within their bound, and their variance is a third of its square. Five standard deviations of an
// estimate from 30000 numbers are 0.026 of it.
TEST(Init, UniformIsWithinItsBound) {
  const std::vector<float> all = begun({Init::Kind::uniform, 0.5}, {300, 100});
  double squares = 0;
  for (const float number : all) {
    EXPECT_LE(std::abs(number), 0.5f);
    squares += static_cast<double>(number) * number;
  }
  EXPECT_NEAR(squares / 30000, 0.25 / 3, 0.026 * 0.25 / 3);
}

TEST(Init, ConstantIsTheConstant) { EXPECT_EQ(begun({Init::Kind::constant, 0.5}, {2}), std::vector<float>(2, 0.5f)); }

// Sines and cosines interleaved, of wave lengths from 2π to 10000 · 2π.
TEST(Init, SinusoidsAreTheFormulas) {
  const std::vector<float> all = begun({Init::Kind::sinusoids}, {50, 8});
  for (int64_t t = 0; t < 50; ++t)
    for (int64_t i = 0; i < 4; ++i) {
      const double angle = static_cast<double>(t) / std::pow(10000.0, 2.0 * static_cast<double>(i) / 8);
      EXPECT_NEAR(all[t * 8 + 2 * i], std::sin(angle), 1e-6);
      EXPECT_NEAR(all[t * 8 + 2 * i + 1], std::cos(angle), 1e-6);
    }
}

// PyTorch's linear layers: weights and biases within 1/√in.
TEST(Init, ByWidthIsPyTorchs) {
  const LinearInit init = Inits{.byWidth = true}.inner(16);
  EXPECT_EQ(init.weight.size, 0.25);
  EXPECT_EQ(init.bias.size, 0.25);
  EXPECT_EQ(Inits{}.inner(16).weight.size, 0.02);
}

// Under each policy, parameters with weight decay come first. Fixed tables have none.
TEST(Decay, FollowsFromRoleAndPolicy) {
  for (const auto &[policy, count] : {std::pair(DecayOn::matrices, 2), {DecayOn::nonzero, 3}, {DecayOn::all, 4}}) {
    ParameterList list;
    for (const Role role : {Role::bias, Role::fixed, Role::gain, Role::table, Role::matrix})
      list.add("", {64}, {}, role);
    list.place(policy);
    EXPECT_EQ(list.decayedCount(), 64 * count);
    for (const Parameter &p : list.all())
      EXPECT_EQ(p.offset < list.decayedCount(), decays(p.role, policy));
    EXPECT_FALSE(decays(Role::fixed, policy));
  }
}

} // namespace
