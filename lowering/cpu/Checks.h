// Reports failures of a check of a tile. If the loops found that some element fails, code after them searches the tile
// again, element by element.

#pragma once

#include "lowering/cpu/Evaluator.h"

namespace kiln::lowering::cpu {

/// Emits a branch that reports the false elements if `holds` (i1) is false.
void branchToFailures(Evaluator &e, tile::CheckOp check, mlir::Value holds);

} // namespace kiln::lowering::cpu
