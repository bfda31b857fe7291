// Windows of losses and norms, and their outliers.

#include "kernels/adamw.h"
#include "kernels/outliers.h"
#include "test/kernels/harness.h"

#include <cmath>

namespace kiln {
namespace {

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
