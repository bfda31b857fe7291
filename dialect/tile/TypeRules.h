// Rules about element types that the dialect's verifiers and the language share.

#pragma once

#include "mlir/IR/Operation.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace kiln::tile {

/// The number of an element type in the list of ElementTypes.def, which is that of kiln::Type: of an integer that of
/// the signed one; none for another type.
std::optional<unsigned> numberOf(mlir::Type type);
/// The element type of a number in that list.
mlir::Type typeNumbered(mlir::MLIRContext *context, unsigned number);

/// A float of 16 bits or fewer, whose arithmetic is done in f32 and rounded once.
bool isNarrowFloat(mlir::Type type);
/// One of 8 bits, for which no machine of ours has arithmetic. Rounding to it saturates.
bool isByteFloat(mlir::Type type);
/// What the factors of a product are that are bytes to all but its instruction: two floats of 8 bits.
inline constexpr llvm::StringLiteral factorsName = "tile.factors";

/// Whether the integers that an operation takes, or a float becomes, have no sign: its `tile.unsigned`. MLIR's integers
/// do not tell.
bool isUnsigned(mlir::Operation *op);
void setUnsigned(mlir::Operation *op, bool isUnsigned);

/// What products of `operand` are summed in; null when `dot` does not take it.
mlir::Type sumTypeOf(mlir::Type operand);
/// The operands that `dot` takes, for messages.
inline constexpr const char *dotOperands = "f32, bf16, f16, f8e4m3, f8e5m2, f64 or i8";

/// What atomics do to elements, for the rules of types; the first seven are those of tile::AtomicKind, in its order.
enum class AtomicUse { add, min, max, bitAnd, bitOr, bitXor, exchange, compare };
/// Whether elements of a view may be used so.
bool isAtomic(AtomicUse use, mlir::Type type);
/// Those that may, for messages.
const char *atomicElements(AtomicUse use);

/// The extents of a shape but that of one axis.
llvm::SmallVector<int64_t> withoutAxis(llvm::ArrayRef<int64_t> shape, int64_t axis);

} // namespace kiln::tile
