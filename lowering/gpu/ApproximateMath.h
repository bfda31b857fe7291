// Patterns that spell functions by the GPU's own approximate instructions.

#pragma once

#include "mlir/IR/PatternMatch.h"

namespace kiln::lowering::gpu {

/// Patterns for functions and divisions of f32 whose `tile.accuracy` is `fast`, and for those where such an instruction
/// stays within the bounds of every machine: rsqrt. They come before those of FunctionPatterns.h.
void addApproximatePatterns(mlir::RewritePatternSet &patterns);

} // namespace kiln::lowering::gpu
