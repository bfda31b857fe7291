// Floats that nothing computes with any more, carried as the integers of their bits.

#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kiln::lowering {

/// The type with integers of as many bits in place of the floats for which `isCarried` holds.
mlir::Type carriedAsBits(mlir::Type type, llvm::function_ref<bool(mlir::Type)> isCarried);

/// Gives `carried` of its type to every value of the function, its arguments among them, and to every constant.
/// Conversions to such floats and from them are bitcasts by then, which vanish. Intrinsics of LLVM stay as they are.
///
///     %0 = arith.bitcast %x : tensor<4xf8E5M2> to tensor<4xi8>
///     // becomes %x, a tensor<4xi8>
void carryAsBits(mlir::func::FuncOp func, llvm::function_ref<mlir::Type(mlir::Type)> carried);

} // namespace kiln::lowering
