// Replaces floats on which there is no arithmetic any more by integers with their bits.

#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kiln::lowering {

/// The type with integers of as many bits in place of the floats for which `isCarried` holds.
mlir::Type carriedAsBits(mlir::Type type, llvm::function_ref<bool(mlir::Type)> isCarried);

/// Sets the type of every value of the function, arguments included, and of every constant to `carried` of its type.
/// Bitcasts to and from such floats are removed; there are no other conversions of them left. LLVM intrinsics do not
/// change.
///
///     %0 = arith.bitcast %x : tensor<4xf8E5M2> to tensor<4xi8>
///     // becomes %x, a tensor<4xi8>
void carryAsBits(mlir::func::FuncOp func, llvm::function_ref<mlir::Type(mlir::Type)> carried);

} // namespace kiln::lowering
