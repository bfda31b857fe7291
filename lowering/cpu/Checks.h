// What a check of a tile tells: behind the loops that found that not all of it holds, it looks through the tile once
// more, element by element.

#pragma once

#include "lowering/cpu/Evaluator.h"

namespace kiln::lowering::cpu {

/// Emits a branch that tells of the elements that are false, for where `holds` (i1) is.
void branchToFailures(Evaluator &e, tile::CheckOp check, mlir::Value holds);

} // namespace kiln::lowering::cpu
