// Element types, and result types of operations.

#include "dialect/tile/TypeRules.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

#include <algorithm>

using namespace mlir;

namespace kiln::tile {

namespace {
enum class Number : unsigned {
#define KILN_TYPE(name, spelling, bytes, kind, MLIR, NumPy, safetensors) name,
#include "dialect/tile/ElementTypes.def"
};

/// MLIR's builder, with types that it has no functions for.
struct TypeBuilder : Builder {
  using Builder::Builder;
  Type getF8E4M3FNType() { return Float8E4M3FNType::get(getContext()); }
  Type getF8E5M2Type() { return Float8E5M2Type::get(getContext()); }
  Type getF8E8M0FNUType() { return Float8E8M0FNUType::get(getContext()); }
  Type getI16Type() { return getIntegerType(16); }
};
} // namespace

Type typeNumbered(MLIRContext *context, unsigned number) {
  TypeBuilder builder(context);
  switch (static_cast<Number>(number)) {
#define KILN_TYPE(name, spelling, bytes, kind, MLIR, NumPy, safetensors)                                               \
  case Number::name:                                                                                                   \
    return builder.get##MLIR##Type();
#include "dialect/tile/ElementTypes.def"
  }
  return {};
}

std::optional<unsigned> typeNumber(Type type) {
  // Called for each function call of a traced kernel, so it does not access the context.
  const auto integer = dyn_cast<IntegerType>(type);
  const unsigned width = integer && integer.isSignless() ? integer.getWidth() : 0;
  const bool isI1 = width == 1, isI8 = width == 8, isI16 = width == 16, isI32 = width == 32, isI64 = width == 64;
  const bool isF8E4M3FN = isa<Float8E4M3FNType>(type), isF8E5M2 = isa<Float8E5M2Type>(type),
             isF8E8M0FNU = isa<Float8E8M0FNUType>(type), isBF16 = isa<BFloat16Type>(type),
             isF16 = isa<Float16Type>(type), isF32 = isa<Float32Type>(type), isF64 = isa<Float64Type>(type);
#define KILN_TYPE(name, spelling, bytes, kind, MLIR, NumPy, safetensors)                                               \
  if (is##MLIR)                                                                                                        \
    return static_cast<unsigned>(Number::name);
#include "dialect/tile/ElementTypes.def"
  return std::nullopt;
}

bool isNarrowFloat(Type type) { return isa<FloatType>(type) && type.getIntOrFloatBitWidth() <= 16; }
bool isByteFloat(Type type) { return isa<FloatType>(type) && type.getIntOrFloatBitWidth() == 8; }

bool isScale(Type type) { return isa<Float8E8M0FNUType>(type); }

/// The power of two nearest to a value, as an E8M0.
static APFloat roundToScale(const APFloat &value, const llvm::fltSemantics &semantics) {
  constexpr int bias = 127, largest = 254, notANumber = 255;
  int code = 0;
  if (value.isNaN() || (value.isNegative() && !value.isZero())) {
    code = notANumber;
  } else if (value.isInfinity()) {
    code = largest;
  } else if (!value.isZero()) {
    int exponent;
    const APFloat fraction = frexp(value, exponent, APFloat::rmTowardZero); // from 0.5 below 1
    APFloat tie(0.75);
    bool inexact;
    tie.convert(value.getSemantics(), APFloat::rmTowardZero, &inexact);
    code = std::clamp(exponent - 1 + (fraction < tie ? 0 : 1) + bias, 0, largest);
  }
  return {semantics, APInt(8, code)};
}

APFloat roundToByte(APFloat value, FloatType to) {
  if (isScale(to))
    return roundToScale(value, to.getFloatSemantics());
  const APFloat largest = APFloat::getLargest(to.getFloatSemantics(), value.isNegative());
  APFloat limit = largest;
  bool inexact;
  limit.convert(value.getSemantics(), APFloat::rmNearestTiesToEven, &inexact);
  if (!value.isNaN() && abs(value) >= abs(limit))
    return largest;
  value.convert(to.getFloatSemantics(), APFloat::rmNearestTiesToEven, &inexact);
  return value;
}

static constexpr llvm::StringLiteral unsignedName = "tile.unsigned";

bool isUnsigned(Operation *op) { return op->hasAttr(unsignedName); }

void setUnsigned(Operation *op, bool isUnsigned) {
  if (isUnsigned)
    op->setAttr(unsignedName, UnitAttr::get(op->getContext()));
  else
    op->removeAttr(unsignedName);
}

Type sumTypeOf(Type operand) {
  Builder builder(operand.getContext());
  if (operand.isInteger(8))
    return builder.getI32Type();
  if (isScale(operand))
    return {};
  if (isNarrowFloat(operand))
    return builder.getF32Type();
  return operand.isF32() || operand.isF64() ? operand : Type();
}

bool isAtomic(AtomicUse use, Type type) {
  const bool isInteger = type.isSignlessInteger(32) || type.isSignlessInteger(64);
  const bool isReal = type.isF32() || type.isF64();
  switch (use) {
  case AtomicUse::min:
  case AtomicUse::max:
    return isInteger || isReal;
  case AtomicUse::bitAnd:
  case AtomicUse::bitOr:
  case AtomicUse::bitXor:
    return isInteger;
  case AtomicUse::add:
  case AtomicUse::exchange:
  case AtomicUse::compare:
    break;
  }
  const bool isNarrow = type.getIntOrFloatBitWidth() == 16 && (use != AtomicUse::add || isNarrowFloat(type));
  return isInteger || isReal || isNarrow;
}

const char *atomicElements(AtomicUse use) {
  switch (use) {
  case AtomicUse::min:
  case AtomicUse::max:
    return "i32, u32, i64, u64, f32 or f64";
  case AtomicUse::bitAnd:
  case AtomicUse::bitOr:
  case AtomicUse::bitXor:
    return "i32, u32, i64 or u64";
  case AtomicUse::add:
    return "i32, u32, i64, u64, bf16, f16, f32 or f64";
  case AtomicUse::exchange:
  case AtomicUse::compare:
    break;
  }
  return "i16, u16, i32, u32, i64, u64, bf16, f16, f32 or f64";
}

LogicalResult verifyAxis(Operation *op, int64_t axis, int64_t rank) {
  if (axis >= 0 && axis < rank)
    return success();
  return op->emitOpError("expected an axis from 0 to ") << rank - 1 << ", but got " << axis;
}

llvm::SmallVector<int64_t> withoutAxis(llvm::ArrayRef<int64_t> shape, int64_t axis) {
  llvm::SmallVector<int64_t> rest(shape);
  rest.erase(rest.begin() + axis);
  return rest;
}

} // namespace kiln::tile
