// Verifiers and effects of operations of single threads.

#include "dialect/simt/SimtDialect.h"
#include "dialect/tile/AccessRules.h"
#include "dialect/tile/TypeRules.h"

using namespace mlir;

namespace kiln::simt {

/// A vector has 1, 2, 4, 8 or 16 bytes, and an address has the width of its space. Only accesses of global memory
/// without a memory order may have a cache hint.
static LogicalResult verifyAccess(Operation *op, Space space, Type vectorType, Type address, int64_t displacement,
                                  bool isStrong) {
  auto vector = cast<VectorType>(vectorType);
  const int64_t bits = vector.getNumElements() * vector.getElementTypeBitWidth();
  if (bits < 8 || bits > 128 || !llvm::isPowerOf2_64(bits))
    return op->emitOpError("expected a vector of 1, 2, 4, 8 or 16 bytes, but got ") << vectorType;
  const unsigned width = space == Space::Global ? 64 : 32;
  if (!address.isInteger(width))
    return op->emitOpError("expected an address of i")
           << width << " in " << stringifySpace(space) << " memory, but got " << address;
  if (!llvm::isInt<32>(displacement))
    return op->emitOpError("expected a displacement of 32 bits, but got ") << displacement;
  const bool isOrdering = isStrong && op->hasAttr("simt.order");
  if (op->hasAttr(tile::cacheName) && (isOrdering || space != Space::Global))
    return op->emitOpError("expected '") << tile::cacheName
                                         << "' on an access of global memory alone that orders no other";
  return success();
}

LogicalResult LoadOp::verify() {
  if (getOther() && getOther().getType() != getType())
    return emitOpError("expected 'else' to be of the result's type ")
           << getType() << ", but got " << getOther().getType();
  return verifyAccess(*this, getSpace(), getType(), getAddress().getType(), getDisplacement(), getStrong());
}

void LoadOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  if (!getReadonly())
    effects.emplace_back(MemoryEffects::Read::get());
}

LogicalResult StoreOp::verify() {
  return verifyAccess(*this, getSpace(), getValue().getType(), getAddress().getType(), getDisplacement(), getStrong());
}

LogicalResult MmaOp::verify() {
  auto a = cast<VectorType>(getA().getType()), b = cast<VectorType>(getB().getType()),
       acc = cast<VectorType>(getAcc().getType());
  const Type element = a.getElementType();
  if (getAPart().has_value() != getBPart().has_value() || (getAPart() && !element.isF32()))
    return emitOpError("expected a part of both factors, of f32, or of none, but got ") << a << " and " << b;
  const bool isOfBf16 = getAPart() && a.getNumElements() == 8;
  const int64_t k = 256 / (isOfBf16 ? 16 : element.getIntOrFloatBitWidth());
  if (b.getElementType() != element || a.getNumElements() != 16 * k / 32 || b.getNumElements() != 8 * k / 32)
    return emitOpError("expected ") << 16 * k / 32 << " and " << 8 * k / 32 << " elements of one type, but got " << a
                                    << " and " << b;
  const bool isInteger = element.isInteger() && !(*this)->hasAttr(tile::factorsName);
  if (acc.getNumElements() != 4 || acc.getElementType().isInteger() != isInteger)
    return emitOpError("expected an accumulator of 4 ") << (isInteger ? "i32" : "f32") << ", but got " << acc;
  return success();
}

LogicalResult WgmmaOp::verify() {
  const Type element = getElement();
  const int64_t columns = 2 * cast<VectorType>(getType()).getNumElements();
  if ((element.isBF16() || element.isF16()) && columns % 8 == 0 && columns <= 256)
    return success();
  return emitOpError("expected bf16 or f16, and accumulators of 8 to 256 columns, but got ")
         << element << " and " << getType();
}

LogicalResult WgmmaRowsOp::verify() {
  const int64_t steps = static_cast<int64_t>(getSteps().size()), elements = getA().getType().getNumElements();
  if (getAcc() && getAcc().getType() != getType())
    return emitOpError("expected accumulators of one type, but got ") << getAcc().getType() << " and " << getType();
  if (steps == 0 || elements % (8 * steps) != 0 || getType().getNumElements() % (4 * blocks()) != 0 || columns() > 256)
    return emitOpError(
               "expected fragments for each of the steps, and accumulators of 8 to 256 columns for each block of rows, "
               "but got ")
           << getA().getType() << " and " << getType();
  return success();
}

void ThreadOp::inferResultRanges(ArrayRef<ConstantIntRanges>, SetIntRangeFn set) {
  set(getResult(), ConstantIntRanges::fromUnsigned(APInt(32, 0), APInt(32, 32 * getWarps() - 1)));
}

} // namespace kiln::simt
