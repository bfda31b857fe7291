// Sorts, and what else finds its place by values, in nests of their own.

#pragma once

#include "dialect/tile/SortOps.h"
#include "lowering/cpu/Loops.h"

namespace kiln::lowering::cpu {

/// Emits what `op`, an operation of dialect/tile/SortOps.td, does, before it, and notes the buffers of its results;
/// whether it is one.
bool lowerSorts(mlir::Operation *op, Machine machine, llvm::DenseMap<mlir::Value, mlir::Value> &buffers);

/// In LowerSort.cpp …
void lowerSort(tile::SortOp op, Machine machine, llvm::DenseMap<mlir::Value, mlir::Value> &buffers);
/// … and in LowerTake.cpp.
void lowerTake(tile::TakeOp op, Machine machine, llvm::DenseMap<mlir::Value, mlir::Value> &buffers);
void lowerHistogram(tile::HistogramOp op, Machine machine, llvm::DenseMap<mlir::Value, mlir::Value> &buffers);

} // namespace kiln::lowering::cpu
