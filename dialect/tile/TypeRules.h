// Rules about element types, for the dialect's verifiers and the language.

#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace kiln::tile {

/// The number of an element type in the list of ElementTypes.def, as in kiln::Type. An integer has the number of the
/// signed type. Nothing for another type.
std::optional<unsigned> typeNumber(mlir::Type type);
/// The element type of a number in that list.
mlir::Type typeNumbered(mlir::MLIRContext *context, unsigned number);

/// A float of 16 bits or fewer, whose arithmetic is done in f32 and rounded once.
bool isNarrowFloat(mlir::Type type);
/// An 8-bit float. No supported machine has arithmetic in it. Rounding to it saturates.
bool isByteFloat(mlir::Type type);
/// The 8-bit float of scales, the OCP's E8M0: 2^-127 to 2^127 and NaN, without a sign and without 0.
bool isScale(mlir::Type type);
/// The value as an 8-bit float: nearest even; numbers beyond the largest one and infinities saturate. A scale is the
/// nearest power of two, the larger one of two; numbers below the smallest one saturate too, and negative ones are NaN.
llvm::APFloat roundToByte(llvm::APFloat value, mlir::FloatType to);
/// The attribute with the two 8-bit float types of a product's operands, which are bytes in the IR.
inline constexpr llvm::StringLiteral factorsName = "tile.factors";

/// Whether the integer operands of an operation, or the integer result of a float, are unsigned: its attribute
/// `tile.unsigned`. MLIR's integers are signless.
bool isUnsigned(mlir::Operation *op);
void setUnsigned(mlir::Operation *op, bool isUnsigned);

/// The accumulator type of a `dot` with operands of type `operand`; null if `dot` does not support the type.
mlir::Type sumTypeOf(mlir::Type operand);
/// The operand types of `dot`, for messages.
inline constexpr const char *dotOperands = "f32, bf16, f16, f8e4m3, f8e5m2, f64 or i8";

/// The atomic operations, for the rules about types. The first seven are those of tile::AtomicKind, in its order.
enum class AtomicUse { add, min, max, bitAnd, bitOr, bitXor, exchange, compare };
/// Whether the operation supports elements of this type.
bool isAtomic(AtomicUse use, mlir::Type type);
/// The element types that it supports, for messages.
const char *atomicElements(AtomicUse use);

/// Reports an error of `op` unless `axis` is one of `rank` dimensions.
mlir::LogicalResult verifyAxis(mlir::Operation *op, int64_t axis, int64_t rank);

/// The extents of a shape without that of one axis.
llvm::SmallVector<int64_t> withoutAxis(llvm::ArrayRef<int64_t> shape, int64_t axis);

} // namespace kiln::tile
