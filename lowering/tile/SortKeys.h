// Replaces sorts of any element type by sorts of integers.

#pragma once

#include "mlir/IR/PatternMatch.h"

namespace kiln::lowering {

/// Replaces every `tile.sort` by an ascending sort of i32 or i64 whose positions are not used (SortOp::isOfKeys).
void addSortPatterns(mlir::RewritePatternSet &patterns);

} // namespace kiln::lowering
