// Patterns that lower functions to the GPU's approximate instructions.

#pragma once

#include "mlir/IR/PatternMatch.h"

namespace kiln::lowering::gpu {

/// Patterns for f32 functions and divisions whose `tile.accuracy` is `fast`. Also for rsqrt in full accuracy, because
/// the instruction with a correction meets the bound. They have priority over those of FunctionPatterns.h.
void addApproximatePatterns(mlir::RewritePatternSet &patterns);

} // namespace kiln::lowering::gpu
