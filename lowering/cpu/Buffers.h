// Scratch memory for tiles. AllocateScratch.cpp assigns each buffer its offset.

#pragma once

#include "lowering/cpu/Evaluator.h"

namespace kiln::lowering::cpu {

/// Scratch memory for a tile: rows padded to whole vectors, and by `skew` elements more.
mlir::Value allocateBuffer(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type tile, Machine machine,
                           int64_t skew = 0);

/// Scratch memory of rank 1 for a `cpu.dense` tile, whose rows are contiguous.
mlir::Value allocateDense(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType tile, Machine machine);

} // namespace kiln::lowering::cpu
