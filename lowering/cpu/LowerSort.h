// Lowers sorts, gathers within a tile (`tile.take`) and histograms. Each has its own loop nest.

#pragma once

#include "dialect/tile/SortOps.h"
#include "lowering/cpu/Loops.h"

namespace kiln::lowering::cpu {

/// If `op` is an operation of dialect/tile/SortOps.td, emits its code before it and records the buffers of its results.
/// Returns whether it is one.
bool lowerSorts(mlir::Operation *op, Machine machine, llvm::DenseMap<mlir::Value, mlir::Value> &buffers);

/// In LowerSort.cpp …
void lowerSort(tile::SortOp op, Machine machine, llvm::DenseMap<mlir::Value, mlir::Value> &buffers);
/// … and in LowerTake.cpp.
void lowerTake(tile::TakeOp op, Machine machine, llvm::DenseMap<mlir::Value, mlir::Value> &buffers);
void lowerHistogram(tile::HistogramOp op, Machine machine, llvm::DenseMap<mlir::Value, mlir::Value> &buffers);

} // namespace kiln::lowering::cpu
