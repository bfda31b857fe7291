// Steps whose loss or gradient stands out from those before: a step's record says of both how many deviations they are
// above the mean of the last ones, and leaves the update out where that is more than a limit. As llm.c's outlier
// detector has it: the window holds the new value too, whether the step is applied or not, and nothing stands out
// before it is full.

#pragma once

#include "dialect/dsl/Plan.h"

#include <limits>

namespace kiln {

/// Values of a window, and its shape: losses, norms, and in the third row, at 0, where the next values go: so many
/// values while there is room, then 128 more than their place. All zeros is an empty window.
inline constexpr int64_t outlierWindow = 128;
inline const Shape outlierWindowShape = {3, outlierWindow};

struct OutlierConfig {
  int window = outlierWindow; // values of a window, a power of two
};

extern const Kernel outliersKernel;

/// What is left out: deviations above the mean; infinity: nothing.
struct OutlierLimits {
  double loss = std::numeric_limits<double>::infinity(), norm = std::numeric_limits<double>::infinity();
};

/// Adds the loss and the norm of a step, which planGradNorm has completed the record of, to `window`, and puts lossZ
/// and normZ into `record` (stepFields) f32: (x − mean) / √(mean of squares of differences), over the window with x in
/// it; 0 before that is full, and where all are the same. Where one is above its limit, `applied` becomes 0. A step
/// that is not applied anyway leaves the window as it is. The record's loss is a sum that times `lossFactor` · weight ·
/// unscale is the mean over the step's targets. window (3, 128) f32.
Plan planOutliers(const TensorRef &record, const TensorRef &window, double lossFactor, const OutlierLimits &limits);

} // namespace kiln
