// AdamW and the gradient norm against double precision.

#include "kernels/adamw.h"
#include "test/kernels/harness.h"

#include <cmath>

namespace kiln {
namespace {

using AdamWTest = KernelTest;

// Three steps over two and a half blocks; decay ends inside the second block. Each step's quantities are made of a
// dozen roundings, relative to terms no larger than the ones summed here; scalars rounded to f32 count as roundings
// too. The update is at most lr · 1 / (1 − β₁) or so, and errors of m and v enter it relative to their size.
TEST_P(AdamWTest, StepsLikeTheFormula) {
  const int64_t n = 160;
  Array p = uniform({n}, f32), g = uniform({n}, type()), m = uniform({n}, f32, 0), v = uniform({n}, f32, 0);
  AdamWStep step = {.lr = 0.01, .beta1 = 0.9, .beta2 = 0.95, .decay = 0.5, .decayed = 100, .gradScale = 0.75};
  std::vector<double> P = p.values, M(n), V(n);
  for (step.step = 1; step.step <= 3; ++step.step) {
    step.zeroGrad = step.step == 3;
    run(planAdamW(target(), p, g, m, v, step, {.block = 64}));
    for (int64_t i = 0; i < n; ++i) {
      const double grad = g[i] * step.gradScale;
      M[i] = step.beta1 * M[i] + (1 - step.beta1) * grad;
      V[i] = step.beta2 * V[i] + (1 - step.beta2) * grad * grad;
      const double mHat = M[i] / (1 - std::pow(step.beta1, step.step)),
                   vHat = V[i] / (1 - std::pow(step.beta2, step.step));
      P[i] -= step.lr * (mHat / (std::sqrt(vHat) + step.epsilon) + (i < step.decayed ? step.decay : 0) * P[i]);
    }
  }
  std::vector<Want> wantP, wantM, wantV;
  for (int64_t i = 0; i < n; ++i) {
    wantP.push_back({P[i], 3 * (4 * u32 * std::abs(P[i]) + 2 * step.lr * 20 * u32)});
    wantM.push_back({M[i], 12 * u32 * std::abs(M[i])});
    wantV.push_back({V[i], 15 * u32 * std::abs(V[i])});
  }
  expectClose("p", p, wantP);
  expectClose("m", m, wantM);
  expectClose("v", v, wantV);
  expectEqual("g", g.read(), std::vector<double>(n, 0));
}

// Without being asked it leaves the gradient as it is.
TEST_P(AdamWTest, KeepsTheGradient) {
  Array p = uniform({70}, f32), g = uniform({70}, type()), m = uniform({70}, f32, 0), v = uniform({70}, f32, 0);
  run(planAdamW(target(), p, g, m, v, {}, {.block = 64}));
  expectEqual("g", g.read(), g.values);
}

// The first `decayed` elements decay, exactly those: with no gradient decay is all that happens.
TEST_P(AdamWTest, DecayEndsAtItsBoundary) {
  for (const int64_t decayed : {0, 1, 63, 64, 65, 130}) {
    Array p = array({130}, f32, std::vector<double>(130, 1)), zero = array({130}, type(), std::vector<double>(130, 0));
    Array m = array({130}, f32, zero.values), v = array({130}, f32, zero.values);
    run(planAdamW(target(), p, zero, m, v, {.lr = 0.5, .decay = 0.5, .decayed = decayed}, {.block = 64}));
    std::vector<double> want(130, 1);
    std::fill_n(want.begin(), decayed, 0.75);
    expectEqual("p", p.read(), want);
  }
}

// Norms of vectors round blocks and chunks; all terms are positive, so the sum is good to (length + 1) · u32 of itself
// and the root to half of that.
TEST_P(AdamWTest, NormOfAVector) {
  for (const int64_t n : {1, 64, 65, 256, 700}) {
    Array g = uniform({n}, type(), 3), out = unwritten({1}, f32);
    run(planGradNorm(target(), g, out, {.block = 64, .chunk = 256}));
    double sum = 0;
    for (const double value : g.values)
      sum += value * value;
    expectClose("norm", out, {{std::sqrt(sum), std::sqrt(sum) * (n + 4) * u32}});
  }
}

// Partial sums in a written order.
TEST_P(AdamWTest, NormIsDeterministic) {
  Array g = uniform({3000}, type()), out = unwritten({1}, f32);
  expectSameBits(planGradNorm(target(), g, out, {.block = 64, .chunk = 256}), {&out});
}

INSTANTIATE_TEST_SUITE_P(Machines, AdamWTest, testing::ValuesIn(machines()), machineName);

} // namespace
} // namespace kiln
