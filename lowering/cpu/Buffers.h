// Scratch memory for tiles. AllocateScratch.cpp says where in the kernel's it lies.

#pragma once

#include "lowering/cpu/Evaluator.h"

namespace kiln::lowering::cpu {

/// Scratch memory for a tile: rows padded to whole vectors, and by `skew` elements more.
mlir::Value allocateBuffer(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type tile, Machine machine,
                           int64_t skew = 0);

/// The same for a tile whose rows lie one behind the other, `cpu.dense`, of rank 1.
mlir::Value allocateDense(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType tile, Machine machine);

} // namespace kiln::lowering::cpu
