// Untuned kernels as users might write them, as different from each other as possible. `kiln-bench users` counts their
// GPU instructions and compares them with Triton's for the same problems. A test runs them.

#pragma once

#include "tools/kiln-bench/problems.h"

namespace kiln::bench {

extern const Kernel rmsNormKernel, userSoftmaxKernel, groupNormKernel, klLossKernel, largestKernel;
extern const Kernel dropoutKernel, ropeKernel, stencilKernel, convolveKernel;
extern const Kernel swigluKernel, scaledProductKernel, lstmStepKernel, persistentProductKernel;
extern const Kernel windowAttentionKernel, pagedAttentionKernel;
extern const Kernel selectiveScanKernel, runningSumKernel, sortRowsKernel;
extern const Kernel sparseRowsKernel, bagsKernel, histogramKernel;

/// A launch of each; `peer` is its name in triton_users.py.
std::vector<Problem> userProblems(Operands &make);

} // namespace kiln::bench
