// Which tiles get scratch memory at their definition; all other inlinable ones are computed where they are used.

#pragma once

#include "lowering/analysis/TileUses.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kiln::lowering::cpu {

/// The tiles of `function` to place.
llvm::DenseSet<mlir::Value> placeTiles(mlir::func::FuncOp function);

} // namespace kiln::lowering::cpu
