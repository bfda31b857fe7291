// Detects outliers with one program; a window is two vectors.

#include "kernels/outliers.h"
#include "kernels/adamw.h"
#include "kernels/operands.h"

namespace kiln {

static Tile field(View record, StepField name) { return load(record, {static_cast<int>(name)}, {}); } // scalar

static void outliers(View record, View window, Tile lossFactor, Tile lossLimit, Tile normLimit, OutlierConfig cfg) {
  const int W = cfg.window;
  // The counter is the number of values so far, and from W on, W plus the next slot.
  Tile counter = load(window, {2, 0}, {});                  // scalar
  Tile isFull = counter >= float(W);                        // scalar
  Tile slot = where(isFull, counter - float(W), counter);   // scalar
  Tile isSlot = cast(iota(W), f32) == slot;                 // (W)
  Tile isApplied = field(record, StepField::applied) > 0.0; // scalar
  // Inserts a value into a row of the window if the step is applied, and returns whether it is an outlier.
  const auto isOutlier = [&](int row, Tile value, Tile limit, StepField to) {
    Tile values = where(isSlot, value, load(window, {row, 0}, {W}));     // (W)
    Tile mean = sum(values) / float(W);                                  // scalar
    Tile deviation = values - mean;                                      // (W)
    Tile variance = sum(deviation * deviation) / float(W);               // scalar
    Tile hasStatistics = isFull & isApplied & (variance > 0.0);          // scalar
    Tile z = where(hasStatistics, (value - mean) / sqrt(variance), 0.0); // scalar
    store(record, {static_cast<int>(to)}, z);
    if_(isApplied, [&] { store(window, {row, 0}, values); });
    return z > limit; // scalar
  };
  Tile scale = field(record, StepField::weight) * field(record, StepField::unscale);                     // scalar
  Tile loss = field(record, StepField::loss) * lossFactor * scale;                                       // scalar
  Tile isAny = isOutlier(0, loss, lossLimit, StepField::lossZ) |                                         //
               isOutlier(1, field(record, StepField::norm), normLimit, StepField::normZ);                // scalar
  Tile nextSlot = slot + 1.0;                                                                            // scalar
  Tile newCounter = where(nextSlot >= float(W), float(W), where(isFull, nextSlot + float(W), nextSlot)); // scalar
  if_(isApplied, [&] { store(window, {2, 0}, newCounter); });
  store(record, {static_cast<int>(StepField::applied)}, where(isAny, 0.0, cast(isApplied, f32)));
}

static_assert(stepFields == 16 && outlierWindow == 128, "texts of registrations have these numbers");

const Kernel outliersKernel =
    kernel("outliers", outliers,
           {"record (16) f32, state of the step", "window (3, 128) f32, ring buffer: losses, norms, next index",
            "loss_factor f32, factor of the record's loss", "loss_limit f32, in standard deviations",
            "norm_limit f32, in standard deviations"},
           {field("window", &OutlierConfig::window, "values of a window")});

Plan planOutliers(const TensorRef &record, const TensorRef &window, double lossFactor, const OutlierLimits &limits) {
  checkOperands(outliersKernel, {record, window});
  const auto scalar = [](double value) { return Arg(static_cast<float>(value)); };
  return {.launches = {makeLaunch(outliersKernel, OutlierConfig(), programs(1),
                                  {record, window, scalar(lossFactor), scalar(limits.loss), scalar(limits.norm)})}};
}

} // namespace kiln
