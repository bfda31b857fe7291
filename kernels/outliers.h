// Skips steps whose loss or gradient norm is an outlier. The record of a step has the z-score of each: its distance
// above the recent mean in standard deviations. If a z-score exceeds its limit, the update is skipped. As in llm.c's
// outlier detector, the window includes the new value, whether or not the step is applied. Nothing is an outlier before
// the window is full.

#pragma once

#include "dialect/dsl/Plan.h"

#include <limits>

namespace kiln {

/// Length of the window, and the shape of its tensor. It has a row of losses, a row of norms, and in [2, 0] the number
/// of values so far. After 128 values that counter is 128 plus the next index. All zeros is an empty window.
inline constexpr int64_t outlierWindow = 128;
inline const Shape outlierWindowShape = {3, outlierWindow};

struct OutlierConfig {
  int window = outlierWindow; // length of the window, a power of two
};

extern const Kernel outliersKernel;

/// Limits in standard deviations above the mean; infinity: never skip.
struct OutlierLimits {
  double loss = std::numeric_limits<double>::infinity(), norm = std::numeric_limits<double>::infinity();
};

/// Adds the loss and the gradient norm of a step, whose record planGradNorm has completed, to `window`. Writes lossZ
/// and normZ into `record` (stepFields) f32: (x − mean) / √(mean of squared differences) over the window including x.
/// Both are 0 before the window is full, and if all its values are equal. Above a limit, `applied` becomes 0. A step
/// that is already skipped does not change the window. loss · `lossFactor` · weight · unscale is the mean loss of the
/// step's targets. window (3, 128) f32.
Plan planOutliers(const TensorRef &record, const TensorRef &window, double lossFactor, const OutlierLimits &limits);

} // namespace kiln
