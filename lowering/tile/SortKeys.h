// Sorts of any elements as sorts of integers.

#pragma once

#include "mlir/IR/PatternMatch.h"

namespace kiln::lowering {

/// Makes of every `tile.sort` one in ascending order of i32 or i64, of which no positions are asked: SortOp::isOfKeys.
void addSortPatterns(mlir::RewritePatternSet &patterns);

} // namespace kiln::lowering
