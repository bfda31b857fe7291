// AdamW, the gradient norm, and norms of groups of a flat gradient against double precision.

#include "kernels/adamw.h"
#include "kernels/gradient_norms.h"
#include "kernels/outliers.h"
#include "test/kernels/harness.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace kiln {
namespace {

class AdamWTest : public KernelTest {
protected:
  /// A record on the device.
  Array recordOn(const AdamWSettings &settings, const AdamWStep &step) {
    const StepRecord record = makeStepRecord(settings, step);
    return array({stepFields}, f32, {record.numbers.begin(), record.numbers.end()});
  }
  static double field(const Array &record, StepField name) { return record.read()[static_cast<size_t>(name)]; }
};

// Three steps over two and a half blocks; decay ends inside the second block. Each step's values have a dozen
// roundings, relative to terms no larger than the ones summed here; scalars rounded to f32 count as roundings too. The
// update is at most about lr · 1 / (1 − β₁), and contains the relative errors of m and v.
TEST_P(AdamWTest, StepsLikeTheFormula) {
  const int64_t n = 160;
  Array p = uniform({n}, f32), g = uniform({n}, type()), m = uniform({n}, f32, 0), v = uniform({n}, f32, 0);
  AdamWSettings s = {.beta1 = 0.9, .beta2 = 0.95, .decay = 0.5, .decayed = 100};
  AdamWStep step = {.rate = 0.01, .lossScale = 4};
  std::vector<double> P = p.values, M(n), V(n);
  for (step.step = 1; step.step <= 3; ++step.step) {
    s.zeroGrad = step.step == 3;
    run(planAdamW(target(), p, g, m, v, recordOn(s, step), s, {}, AdamWConfig{.block = 64}));
    for (int64_t i = 0; i < n; ++i) {
      const double grad = g[i] / step.lossScale;
      M[i] = s.beta1 * M[i] + (1 - s.beta1) * grad;
      V[i] = s.beta2 * V[i] + (1 - s.beta2) * grad * grad;
      const double mHat = M[i] / (1 - std::pow(s.beta1, step.step)), vHat = V[i] / (1 - std::pow(s.beta2, step.step));
      P[i] -= step.rate * (mHat / (std::sqrt(vHat) + s.epsilon) + (i < s.decayed ? s.decay : 0) * P[i]);
    }
  }
  std::vector<Want> wantP, wantM, wantV;
  for (int64_t i = 0; i < n; ++i) {
    wantP.push_back({P[i], 3 * (4 * roundoff * std::abs(P[i]) + 2 * step.rate * 20 * roundoff)});
    wantM.push_back({M[i], 12 * roundoff * std::abs(M[i])});
    wantV.push_back({V[i], 15 * roundoff * std::abs(V[i])});
  }
  expectClose("p", p, wantP);
  expectClose("m", m, wantM);
  expectClose("v", v, wantV);
  expectEqual("g", g.read(), std::vector<double>(n, 0));
}

// By default the gradient is unchanged.
TEST_P(AdamWTest, KeepsTheGradient) {
  Array p = uniform({70}, f32), g = uniform({70}, type()), m = uniform({70}, f32, 0), v = uniform({70}, f32, 0);
  run(planAdamW(target(), p, g, m, v, recordOn({}, {}), {}, {}, AdamWConfig{.block = 64}));
  expectEqual("g", g.read(), g.values);
}

// The first `decayed` elements decay, exactly those: with no gradient decay is all that happens.
TEST_P(AdamWTest, DecayEndsAtItsBoundary) {
  for (const int64_t decayed : {0, 1, 63, 64, 65, 130}) {
    Array p = array({130}, f32, std::vector<double>(130, 1)), zero = array({130}, type(), std::vector<double>(130, 0));
    Array m = array({130}, f32, zero.values), v = array({130}, f32, zero.values);
    const AdamWSettings s = {.decay = 0.5, .decayed = decayed};
    run(planAdamW(target(), p, zero, m, v, recordOn(s, {.rate = 0.5}), s, {}, AdamWConfig{.block = 64}));
    std::vector<double> want(130, 1);
    std::fill_n(want.begin(), decayed, 0.75);
    expectEqual("p", p.read(), want);
  }
}

// A skipped step changes nothing except the gradient, which it zeroes on request. With infinity in one element of a
// hundred, or NaN, parameters and moments keep their bits.
TEST_P(AdamWTest, LeavesOutAStepWhoseNormIsNotFinite) {
  for (const double bad : {infinity, -infinity, nan}) {
    Array p = uniform({130}, f32), m = uniform({130}, f32), v = array({130}, f32, std::vector<double>(130, 0.5));
    Array copy = uniform({130}, bf16);
    std::vector<double> values(130, 1);
    values[77] = bad;
    Array g = array({130}, type(), values), record = recordOn({}, {.clip = 1});
    run(planGradNorm(target(), g, record, SquaresConfig{.block = 64, .chunk = 64}));
    run(planAdamW(target(), p, g, m, v, record, {.zeroGrad = true}, copy.ref(), AdamWConfig{.block = 64}));
    EXPECT_EQ(field(record, StepField::applied), 0);
    expectEqual("p", p.read(), p.values);
    expectEqual("copy", copy.read(), copy.values);
    expectEqual("m", m.read(), m.values);
    expectEqual("v", v.read(), v.values);
    expectEqual("g", g.read(), std::vector<double>(130, 0));
  }
}

// Norms of vectors with lengths around blocks and chunks. All terms are positive, so the relative error of the sum is
// (length + 1) · roundoff, and that of the root half of it.
TEST_P(AdamWTest, NormOfAVector) {
  for (const int64_t n : {1, 64, 65, 256, 700}) {
    Array g = uniform({n}, type(), 3), record = recordOn({}, {.lossScale = 4});
    run(planGradNorm(target(), g, record, SquaresConfig{.block = 64, .chunk = 256}));
    double sum = 0;
    for (const double value : g.values)
      sum += value * value;
    const double want = 0.25 * std::sqrt(sum);
    expectClose("norm", {field(record, StepField::norm)}, {{want, want * (n + 4) * roundoff}}, f32);
  }
}

// The clipping factor reduces a norm above the limit to it, and is 1 for a norm at or below it. The norm of 3 and 4 is
// exactly 5, so the factor is the f32 nearest to unscale · min(1, clip / (5 · unscale)). One rounding gives the bits of
// a quotient of doubles that is rounded last. Only the named fields change.
TEST_P(AdamWTest, ClipsToTheLimit) {
  for (const double unscale : {1.0, 0.25})
    for (const double clip : {0.125, 1.0, 3.0, 5 * unscale, 7.0, infinity}) {
      Array g = array({2}, type(), {3, 4}), record = recordOn({}, {.clip = clip, .lossScale = 1 / unscale});
      run(planGradNorm(target(), g, record));
      const double norm = 5 * unscale, factor = norm > clip ? clip / norm : 1;
      std::vector<double> want = record.values;
      want[static_cast<size_t>(StepField::norm)] = norm;
      want[static_cast<size_t>(StepField::factor)] = static_cast<float>(factor * unscale);
      want[static_cast<size_t>(StepField::applied)] = want[static_cast<size_t>(StepField::good)] = 1;
      EXPECT_EQ(record.read(), want) << "clip " << clip << ", unscale " << unscale;
    }
}

// Partial sums in a written order.
TEST_P(AdamWTest, NormIsDeterministic) {
  Array g = uniform({3000}, type()), record = recordOn({}, {});
  expectSameBits(planGradNorm(target(), g, record, SquaresConfig{.block = 64, .chunk = 256}), {&record});
}

// Narrow copies of weights are the master weights rounded to nearest. The masters have the bits of a step without
// copies.
TEST_P(AdamWTest, CopiesAreTheMastersRounded) {
  const int64_t n = 160;
  Array p = uniform({n}, f32), alone = array({n}, f32, p.values), g = uniform({n}, type());
  Array m = uniform({n}, f32, 0), v = uniform({n}, f32, 0), record = recordOn({}, {.rate = 0.01});
  const Type narrow = type() == f32 ? bf16 : type();
  Array copy = unwritten({n}, narrow);
  run(planAdamW(target(), p, g, m, v, record, {.decayed = n}, copy.ref(), AdamWConfig{.block = 64}));
  m.reset();
  v.reset();
  run(planAdamW(target(), alone, g, m, v, record, {.decayed = n}, {}, AdamWConfig{.block = 64}));
  EXPECT_TRUE(p.bytes() == alone.bytes());
  EXPECT_EQ(copy.read(), array({n}, narrow, p.read()).values);
  EXPECT_NE(copy.read(), array({n}, narrow, p.values).values); // the step is not lost
}

// Narrow weights without masters are rounded to nearest from the f32 update of the same initial value.
TEST_P(AdamWTest, NarrowWeightsAreTheNearest) {
  const int64_t n = 160;
  Array p = uniform({n}, type()), wide = array({n}, f32, p.values), g = uniform({n}, type());
  Array m = uniform({n}, f32, 0), v = uniform({n}, f32, 0), record = recordOn({}, {.rate = 0.01});
  run(planAdamW(target(), p, g, m, v, record, {.decayed = n}, {}, AdamWConfig{.block = 64}));
  m.reset();
  v.reset();
  run(planAdamW(target(), wide, g, m, v, record, {.decayed = n}, {}, AdamWConfig{.block = 64}));
  EXPECT_EQ(p.read(), array({n}, type(), wide.read()).values);
}

// Weights of 1 decay by 2⁻¹⁴, which rounding to nearest loses in a narrow type. With stochastic rounding, a fraction
// 2⁻¹⁴ / 2⁻ᵖ decreases by a step of 2⁻ᵖ (64 of 4096 in bf16, 512 in f16), within six deviations. Other steps decrease
// other weights; a repeated step the same ones.
TEST_P(AdamWTest, RoundsByChance) {
  const int64_t n = 4096;
  const Type narrow = type() == f32 ? bf16 : type();
  const auto stepped = [&](int64_t step, int block) {
    Array p = array({n}, narrow, std::vector<double>(n, 1)), zero = array({n}, type(), std::vector<double>(n, 0));
    Array m = array({n}, f32, zero.values), v = array({n}, f32, zero.values);
    const AdamWSettings s = {.decay = 0.5, .decayed = n, .rounding = WeightRounding::stochastic, .seed = 3};
    run(planAdamW(target(), p, zero, m, v, recordOn(s, {.rate = 0x1p-13, .step = step}), s, {},
                  AdamWConfig{.block = block}));
    return p.read();
  };
  const std::vector<double> first = stepped(1, 64);
  const double down = 1 - unit(narrow), chance = 0x1p-14 / unit(narrow);
  const auto count = static_cast<double>(std::count(first.begin(), first.end(), down));
  EXPECT_EQ(count + static_cast<double>(std::count(first.begin(), first.end(), 1.0)), n);
  EXPECT_NEAR(count, n * chance, 6 * std::sqrt(n * chance * (1 - chance)));
  EXPECT_EQ(stepped(1, 4000), first);
  EXPECT_NE(stepped(2, 64), first);

  // Eight elements share a random number, and none its bits: runs of 256, which numbers are drawn for, all differ.
  std::set<std::vector<double>> runs;
  for (int64_t i = 0; i < n; i += 256)
    runs.emplace(first.begin() + i, first.begin() + i + 256);
  EXPECT_EQ(std::ssize(runs), n / 256);
}

// --- The scale of the loss ------------------------------------------------------------------------------------------

/// The norm kernel's results for a scale: the next scale, and the good steps since it changed.
using Next = std::pair<double, double>;

class LossScaleTest : public AdamWTest {
protected:
  Next after(double gradient, double scale, int64_t good, int64_t window) {
    Array g = array({2}, type(), {gradient, 1});
    Array record = recordOn({}, {.lossScale = scale, .good = good, .window = window});
    run(planGradNorm(target(), g, record));
    return {field(record, StepField::scale), field(record, StepField::good)};
  }
};

// It halves where the gradient overflows, down to 1, and the good steps begin anew.
TEST_P(LossScaleTest, HalvesOnAnOverflow) {
  for (const double bad : {infinity, nan}) {
    EXPECT_EQ(after(bad, 1024, 7, 10), Next(512, 0));
    EXPECT_EQ(after(bad, 1, 9, 10), Next(1, 0));
    EXPECT_EQ(after(bad, 1024, 0, 0), Next(512, 0));
  }
}

// It doubles with the last good step of a window, up to 2²⁴, and never without a window.
TEST_P(LossScaleTest, DoublesAfterAWindow) {
  EXPECT_EQ(after(1, 1024, 0, 3), Next(1024, 1));
  EXPECT_EQ(after(1, 1024, 2, 3), Next(2048, 0));
  EXPECT_EQ(after(1, 1024, 5, 3), Next(2048, 0)); // the window became shorter
  EXPECT_EQ(after(1, maxLossScale, 2, 3), Next(maxLossScale, 0));
  EXPECT_EQ(after(1, 1024, 99, 0), Next(1024, 100));
}

KILN_ON_MACHINES(LossScaleTest);
KILN_ON_MACHINES(AdamWTest);

// --- Norms of groups ------------------------------------------------------------------------------------------------

using GradientNormsTest = KernelTest;

Tensor list(const std::shared_ptr<Device> &device, const std::vector<int64_t> &numbers) {
  Tensor tensor(device, i64, {std::ssize(numbers)});
  tensor.upload(numbers.data(), tensor.bytes());
  return tensor;
}

// Ranges of one group need not be adjacent, and elements may belong to no group. Chunks end where ranges do, at any
// position, and a group may have several. Squares of small integers are summed exactly.
TEST_P(GradientNormsTest, AreTheirOwnElementsAlone) {
  const int64_t n = 700;
  const Array g = integers({n}, type(), 8);
  const std::vector<GroupRange> ranges = {{0, 130, 1}, {130, 131, 0}, {131, 450, 2}, {460, 700, 0}};
  const GroupChunks chunks = cutIntoChunks(ranges, 4, 100);
  EXPECT_EQ(chunks.firsts, (std::vector<int64_t>{0, 4, 6, 10, 10}));
  std::vector<double> squares(4), want;
  for (const GroupRange &range : ranges)
    for (int64_t i = range.begin; i < range.end; ++i)
      squares[range.group] += g[i] * g[i];
  const Tensor begins = list(device, chunks.begins), ends = list(device, chunks.ends),
               firsts = list(device, chunks.firsts);
  const StepRecord host = makeStepRecord({}, {.lossScale = 4});
  Array record = array({stepFields}, f32, {host.numbers.begin(), host.numbers.end()}), norms = unwritten({4}, f32);
  run(planGradientNorms(target(), g, begins, ends, firsts, record, norms, GradientSquaresConfig{.block = 64}));
  std::vector<Want> all;
  for (const double square : squares)
    all.push_back({std::sqrt(square) / 4, 2 * roundoff * std::sqrt(square)});
  expectClose("norms", norms, all);
}

KILN_ON_MACHINES(GradientNormsTest);

// --- Windows of losses and norms, and their outliers -----------------------------------------------------------------

class OutliersTest : public KernelTest {
protected:
  static size_t at(StepField field) { return static_cast<size_t>(field); }
  /// A record whose step had this mean loss and this norm.
  Array makeStepRecord(double loss, double norm, bool applied = true) {
    const StepRecord host = kiln::makeStepRecord({}, {.lossScale = 4, .targets = 10});
    std::vector<double> numbers(host.numbers.begin(), host.numbers.end());
    numbers[at(StepField::loss)] = loss * 5; // the sum of all losses is twice what the record says
    numbers[at(StepField::norm)] = norm;
    numbers[at(StepField::applied)] = applied;
    return array({stepFields}, f32, numbers);
  }
  /// The plan's results.
  std::vector<double> judged(Array &window, double loss, double norm, const OutlierLimits &limits,
                             bool applied = true) {
    Array record = makeStepRecord(loss, norm, applied);
    run(planOutliers(record, window, 2, limits));
    window = array(outlierWindowShape, f32, window.read());
    return record.read();
  }
};

// Losses and norms of 300 steps; a reference in doubles keeps the last 128 of each. The window's variance is a sum of
// squared differences, each exact up to the values' rounding. So z is exact to a few units of roundoff times values
// over deviation, 5 / 0.5.
TEST_P(OutliersTest, CountDeviationsFromTheLastOnes) {
  Array window = array(outlierWindowShape, f32, std::vector<double>(3 * outlierWindow));
  std::vector<double> losses, norms;
  const auto zOf = [](const std::vector<double> &all) {
    if (std::ssize(all) <= outlierWindow) // the one that fills it is not judged
      return 0.0;
    double mean = 0, variance = 0;
    for (int64_t i = std::ssize(all) - outlierWindow; i < std::ssize(all); ++i)
      mean += all[i] / outlierWindow;
    for (int64_t i = std::ssize(all) - outlierWindow; i < std::ssize(all); ++i)
      variance += (all[i] - mean) * (all[i] - mean) / outlierWindow;
    return (all.back() - mean) / std::sqrt(variance);
  };
  for (int step = 0; step < 300; ++step) {
    losses.push_back(static_cast<float>(5 + std::sin(step * 0.7) * 0.5));
    norms.push_back(static_cast<float>(1 + step % 7 * 0.125));
    const std::vector<double> got = judged(window, losses.back(), norms.back(), {});
    const double tolerance = 200 * roundoff;
    EXPECT_NEAR(got[at(StepField::lossZ)], zOf(losses), tolerance) << step;
    EXPECT_NEAR(got[at(StepField::normZ)], zOf(norms), tolerance) << step;
    EXPECT_EQ(got[at(StepField::applied)], 1) << step;
  }
}

// A value above its limit skips the update, and still enters the window. With one limit, the other value may be
// anything. A step skipped for another reason stays skipped, and leaves the window unchanged.
TEST_P(OutliersTest, LeaveOutWhatIsAboveALimit) {
  std::vector<double> numbers(3 * outlierWindow);
  for (int i = 0; i < outlierWindow; ++i) {
    numbers[i] = 3 + i % 2;                     // mean 3.5, deviation 0.5
    numbers[outlierWindow + i] = 1 + i % 2 * 2; // mean 2, deviation 1
  }
  numbers[2 * outlierWindow] = outlierWindow + 127;
  const auto appliedAfter = [&](double loss, double norm, const OutlierLimits &limits) {
    Array window = array(outlierWindowShape, f32, numbers);
    const double applied = judged(window, loss, norm, limits)[at(StepField::applied)];
    std::vector<double> want = numbers;
    want[127] = loss, want[outlierWindow + 127] = norm, want[2 * outlierWindow] = outlierWindow;
    EXPECT_EQ(window.values, want);
    return applied;
  };
  EXPECT_EQ(appliedAfter(5, 2, {.loss = 2, .norm = 2}), 0); // 3 deviations, but for its own share in them
  EXPECT_EQ(appliedAfter(5, 2, {.loss = 4, .norm = 2}), 1);
  EXPECT_EQ(appliedAfter(5, 2, {.norm = 2}), 1);
  EXPECT_EQ(appliedAfter(3.5, 6, {.loss = 2, .norm = 2}), 0);
  EXPECT_EQ(appliedAfter(3.5, 6, {.loss = 2}), 1);
  EXPECT_EQ(appliedAfter(1, 0, {.loss = 2, .norm = 2}), 1); // below the mean is no reason
  Array window = array(outlierWindowShape, f32, numbers);
  EXPECT_EQ(judged(window, 5, 6, {}, /*applied=*/false)[at(StepField::applied)], 0);
  EXPECT_EQ(window.values, numbers);
}

KILN_ON_MACHINES(OutliersTest);

} // namespace
} // namespace kiln
