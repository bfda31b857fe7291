// Matrix products on native vectors. See LowerDot.cpp for the structure.

#pragma once

#include "lowering/cpu/Evaluator.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kiln::lowering::cpu {

/// Scratch memory for a tile: rows padded to whole vectors, and by `skew` elements more.
mlir::Value allocateBuffer(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type tile, Machine machine,
                           int64_t skew = 0);

/// Operands narrower than the accumulator are widened on tiles, so that only one element type is left.
void widenDotOperands(mlir::func::FuncOp function);

/// Emits `dot` before itself; the result goes to `result`. With `inPlace` that is also where its accumulator's tile
/// lies.
void lowerDot(tile::DotOp dot, mlir::Value result, bool inPlace, Machine machine,
              const llvm::DenseMap<mlir::Value, mlir::Value> &buffers);

} // namespace kiln::lowering::cpu
