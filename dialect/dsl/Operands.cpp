// Operands of functions: numbers become constants, element types are promoted, shapes broadcast.

#include "dialect/dsl/Tracer.h"

#include "dialect/tile/TypeRules.h"

#include <cmath>

using namespace mlir;

namespace kiln {

Type elementOf(mlir::Value value) { return Tracer::current().elementOf(value); }

Type accumulatorType(Type type) {
  if (type == boolean || bytesOf(type) < bytesOf(i32))
    return isUnsigned(type) ? u32 : i32;
  return type;
}

Shape shapeOf(mlir::Value value) {
  auto shape = tile::shapeOf(value.getType());
  return Shape(shape.begin(), shape.end());
}

mlir::Type typeOf(MLIRContext *context, Type element, const Shape &shape) {
  mlir::Type scalar = tile::typeNumbered(context, static_cast<unsigned>(element));
  return shape.empty() ? scalar : RankedTensorType::get(shape, scalar);
}

std::string describe(mlir::Value value) {
  std::string element = nameOf(elementOf(value));
  Shape shape = shapeOf(value);
  return shape.empty() ? element + " scalar" : element + "[" + textOf(shape) + "]";
}

std::string describeTile(mlir::Value value) {
  Operation *op = shapeOf(value).empty() ? value.getDefiningOp() : nullptr;
  while (isa_and_nonnull<tile::ReshapeOp, tile::CastOp>(op))
    op = op->getOperand(0).getDefiningOp();
  const bool isElement = isa_and_nonnull<tile::LoadOp, tile::GatherOp>(op);
  return describe(value) + (isElement ? "; load(view, {n}) reads one element, load(view, {n}, {64}) a block" : "");
}

Call::Call(const char *name, Loc loc) : tracer(Tracer::current()), name(name), loc(loc), location(tracer.at(loc)) {
  tracer.countCall(loc);
}

bool Effects::clashes(const Effects &other) const {
  const auto hits = [](ArrayRef<int> changed, ArrayRef<int> read) {
    return llvm::any_of(changed, [&](int view) { return llvm::is_contained(read, view); });
  };
  return (!changed.empty() && !other.changed.empty()) || hits(changed, other.read) || hits(other.changed, read);
}

Tile Call::result(mlir::Value value) {
  if (value && (!effects.read.empty() || !effects.changed.empty()))
    tracer.noteEffects(value, effects);
  return tracer.make(value, loc);
}

void Call::follow(ArrayRef<At> operands) {
  Effects before;
  for (const At &operand : operands)
    if (const Effects *done = tracer.effectsOf(operand))
      before.add(*done);
  if (effects.clashes(before) && tracer.isFirst() && !std::exchange(warned, true))
    emitWarning(location) << "'" << name
                          << "': C++ leaves the order of these memory operations unspecified; put each in a "
                             "statement of its own";
  effects.add(before);
}

mlir::Value Call::read(const At &operand) {
  follow(operand);
  return tracer.read(Tracer::tileOf(operand), operand.loc);
}

Mistake Call::expected() { return {*this, std::move(tracer.error(loc) << "'" << name << "' expected ")}; }
Mistake::operator Tile() { return call.poison(); }

// --- Numbers ---------------------------------------------------------------------------------------------------------

double Literal::asReal() const {
  return isFloating ? real
         : isHuge   ? static_cast<double>(static_cast<uint64_t>(integer))
                    : static_cast<double>(integer);
}

std::string Literal::text() const {
  if (isFloating)
    return printField(real);
  return isHuge ? std::to_string(static_cast<uint64_t>(integer)) : printField(integer);
}

/// The type of a number if no tile determines it.
static Type defaultType(Literal number) {
  if (number.isFloating)
    return f32;
  if (number.isBoolean)
    return boolean;
  if (number.isHuge)
    return u64;
  return number.integer == static_cast<int32_t>(number.integer) ? i32 : i64;
}

Literal Literal::allOnes(Type type) {
  Literal ones;
  ones.integer = type == boolean                         ? 1
                 : isUnsigned(type) && bytesOf(type) < 8 ? (int64_t(1) << (8 * bytesOf(type))) - 1
                                                         : -1;
  ones.isHuge = type == u64;
  return ones;
}

/// Whether a constant of `type` can represent the number: exactly for integers, approximately for floats.
static bool fits(MLIRContext *context, Literal number, Type type) {
  if (isFloat(type)) {
    if (tile::isByteFloat(typeOf(context, type))) // they saturate
      return true;
    bool inexact;
    return !(APFloat(number.asReal())
                 .convert(cast<FloatType>(typeOf(context, type)).getFloatSemantics(), APFloat::rmNearestTiesToEven,
                          &inexact) &
             APFloat::opOverflow);
  }
  if (isPair(type))
    return number.asReal() == 0;
  if (number.isFloating)
    return false;
  if (number.isBoolean)
    return true;
  if (type == boolean)
    return !number.isHuge && (number.integer == 0 || number.integer == 1);
  unsigned bits = bytesOf(type) * 8;
  if (isUnsigned(type))
    return bits == 64 ? number.isHuge || number.integer >= 0 : !number.isHuge && number.integer >> bits == 0;
  if (number.isHuge)
    return false;
  return bits == 64 || (number.integer >> (bits - 1)) == 0 || (number.integer >> (bits - 1)) == -1;
}

/// The number as an attribute of `type`. Reports an error and returns null if it does not fit.
static TypedAttr attributeOf(Call &call, Literal number, Type type) {
  MLIRContext *context = call.tracer.builder.getContext();
  if (!fits(context, number, type)) {
    auto diagnostic = call.expected() << "a number that fits " << nameOf(type) << ", but got " << number.text();
    if (number.isHuge)
      diagnostic << "; write the signed number of the same bits, or use cast() to compute in u64";
    return {};
  }
  mlir::Type scalar = typeOf(context, type);
  if (tile::isByteFloat(scalar))
    return FloatAttr::get(scalar, tile::roundToByte(APFloat(number.asReal()), cast<FloatType>(scalar)));
  if (isFloat(type))
    return FloatAttr::get(scalar, number.asReal());
  const auto bits = static_cast<uint64_t>(type == boolean ? number.integer & 1 : number.integer);
  return IntegerAttr::get(scalar,
                          APInt(scalar.getIntOrFloatBitWidth(), bits, /*isSigned=*/false, /*implicitTrunc=*/true));
}

mlir::Value Call::constant(Literal number, Type type, const Shape &shape) {
  TypedAttr attr = attributeOf(*this, number, type);
  if (!attr)
    return {};
  if (!shape.empty())
    attr = DenseElementsAttr::get(RankedTensorType::get(shape, attr.getType()), Attribute(attr));
  return of(type, emit<arith::ConstantOp>(attr));
}

mlir::Value Call::constants(ArrayRef<double> numbers, Type type, const Shape &shape) {
  SmallVector<Attribute> elements;
  for (double number : numbers) {
    Literal literal;
    literal.isHuge = type == u64 && number >= 0x1p63 && number < 0x1p64;
    literal.isFloating =
        isFloat(type) || number != std::trunc(number) || (std::abs(number) >= 0x1p63 && !literal.isHuge);
    if (literal.isFloating)
      literal.real = number;
    else
      literal.integer =
          literal.isHuge ? static_cast<int64_t>(static_cast<uint64_t>(number)) : static_cast<int64_t>(number);
    TypedAttr element = attributeOf(*this, literal, type);
    if (!element)
      return {};
    elements.push_back(element);
  }
  if (shape.empty())
    return of(type, emit<arith::ConstantOp>(llvm::cast<TypedAttr>(elements.front())));
  mlir::Type scalar = llvm::cast<TypedAttr>(elements.front()).getType();
  return of(type, emit<arith::ConstantOp>(DenseElementsAttr::get(RankedTensorType::get(shape, scalar), elements)));
}

mlir::Value Call::value(const At &operand) {
  if (auto number = Tracer::literalOf(operand))
    return constant(*number, defaultType(*number), {});
  return read(operand);
}

mlir::Value Call::valueAs(const At &operand, Type type) {
  if (auto number = Tracer::literalOf(operand))
    return constant(*number, type, {});
  return read(operand);
}

mlir::Value Call::condition(const At &operand, const char *what) {
  mlir::Value found = value(operand);
  if (found && elementOf(found) == boolean && shapeOf(found).empty())
    return found;
  if (found)
    expected() << "a boolean scalar as " << what << ", but got " << describe(found);
  return constant({}, boolean, {});
}

mlir::Value Call::index(const At &operand, const char *what) {
  mlir::Value value = integer(operand, what);
  return value ? position(value) : value;
}

mlir::Value Call::integer(const At &operand, const char *what) {
  mlir::Value value = valueAs(operand, i64);
  if (!value)
    return {};
  Type type = elementOf(value);
  if (!shapeOf(value).empty() || !isInteger(type))
    return expected() << "an integer scalar as " << what << ", but got " << describe(value);
  return value;
}

mlir::Value Call::position(mlir::Value value) {
  if (elementOf(value) != u64)
    return cast(value, i64);
  Literal last;
  last.integer = INT64_MAX; // longer than any view
  mlir::Value most = constant(last, u64, shapeOf(value));
  return cast(emit<arith::MinUIOp>(value, most), i64);
}

// --- Types and shapes ------------------------------------------------------------------------------------------------

mlir::Value Call::cast(mlir::Value value, Type type) {
  const Type from = elementOf(value);
  if (from == type)
    return value;
  // Signed and unsigned integers have one type in MLIR; a cast distinguishes the values until it is folded.
  const bool isWider = isFloat(type) || bytesOf(type) > bytesOf(from);
  const bool matters = isUnsigned(from) ? isWider : isUnsigned(type) && isFloat(from);
  auto op = emit<tile::CastOp>(typeOf(value.getContext(), type, shapeOf(value)), value);
  tile::setUnsigned(op, matters);
  return of(type, op);
}

mlir::Value Call::reshape(mlir::Value value, const Shape &shape) {
  if (shapeOf(value) == shape)
    return value;
  return emit<tile::ReshapeOp>(typeOf(value.getContext(), elementOf(value), shape), value);
}

mlir::Value Call::broadcast(mlir::Value value, const Shape &shape) {
  Shape from = shapeOf(value);
  if (from == shape)
    return value;
  mlir::Type type = typeOf(value.getContext(), elementOf(value), shape);
  if (from.empty())
    return emit<tile::SplatOp>(type, value);
  from.insert(from.begin(), shape.size() - from.size(), 1);
  value = reshape(value, from);
  return from == shape ? value : emit<tile::BroadcastOp>(type, value);
}

bool checkCast(Call &call, mlir::Value value, Type type) {
  const Type from = elementOf(value);
  if (from == type || (!isPair(from) && !isPair(type)))
    return true;
  return call.expected() << "types of single numbers, but got " << describe(value) << " to convert to " << nameOf(type)
                         << "; use " << (isPair(type) ? "pack()" : "unpack()");
}

bool checkArithmetic(Call &call, mlir::Value value) {
  if (hasArithmetic(elementOf(value)))
    return true;
  return call.expected() << "a type with arithmetic, but got " << describe(value) << "; use "
                         << (isPair(elementOf(value)) ? "unpack()" : "cast()");
}

bool Call::checkShape(const Shape &shape) {
  for (int64_t extent : shape)
    if (extent < 1)
      return expected() << "extents of at least 1, but got shape " << textOf(shape);
  if (shape.size() > 5)
    return expected() << "a rank of at most 5, but got shape " << textOf(shape);
  return true;
}

std::optional<Shape> broadcastShape(const Shape &a, const Shape &b) {
  Shape shape = a.size() < b.size() ? b : a;
  const Shape &other = a.size() < b.size() ? a : b;
  size_t lead = shape.size() - other.size();
  for (size_t axis = 0; axis < other.size(); ++axis) {
    int64_t &extent = shape[lead + axis];
    if (extent != other[axis] && extent != 1 && other[axis] != 1)
      return {};
    extent = extent == 1 ? other[axis] : extent;
  }
  return shape;
}

/// Whether a type contains all numbers of another that is not later in the order of promotion. For an integer and a
/// float, the float is accepted.
static bool holdsAll(Type type, Type smaller) {
  if (isPair(type) || isPair(smaller))
    return type == smaller;
  if (type == smaller || smaller == boolean)
    return true;
  if (isFloat(type))
    return !isFloat(smaller) || (bytesOf(smaller) < bytesOf(type) && !(smaller == f8e8m0 && type == f16));
  return isUnsigned(type) ? isUnsigned(smaller) : !isUnsigned(smaller) || bytesOf(smaller) < bytesOf(type);
}

/// A hint for shapes that would broadcast if the lower rank had one more axis of extent 1, such as 4x768 and 4.
static std::string missingAxis(const Shape &a, const Shape &b) {
  const Shape &low = a.size() < b.size() ? a : b, &high = a.size() < b.size() ? b : a;
  if (low.size() + 1 != high.size())
    return "";
  for (size_t axis = low.size(); axis > 0; --axis) {
    Shape longer = low;
    longer.insert(longer.begin() + static_cast<std::ptrdiff_t>(axis), 1);
    if (broadcastShape(longer, high))
      return "; unsqueeze(), or keep in a reduction, makes " + textOf(longer) + " of " + textOf(low);
  }
  return "";
}

Operands unify(Call &call, ArrayRef<const At *> operands) {
  Operands result;
  SmallVector<mlir::Value, 3> values;
  bool hasTile = false, hasReal = false, isPoison = false;
  Type number = boolean;
  SmallVector<Type, 3> types;
  for (const At *operand : operands) {
    if (auto literal = Tracer::literalOf(*operand)) {
      values.push_back({});
      hasReal |= literal->isFloating;
      number = std::max(number, defaultType(*literal));
      continue;
    }
    mlir::Value value = values.emplace_back(call.read(*operand));
    isPoison |= !value;
    if (!value)
      continue;
    types.push_back(elementOf(value));
    result.type = hasTile ? std::max(result.type, elementOf(value)) : elementOf(value);
    auto shape = hasTile ? broadcastShape(result.shape, shapeOf(value)) : shapeOf(value);
    hasTile = true;
    if (!shape) {
      call.expected() << "shapes that broadcast, but got " << textOf(result.shape) << " and " << textOf(shapeOf(value))
                      << missingAxis(result.shape, shapeOf(value));
      return {};
    }
    result.shape = *shape;
  }
  if (isPoison)
    return {};
  for (Type type : types)
    if (!holdsAll(result.type, type)) {
      call.expected() << "operands of one type, but got " << nameOf(type) << " and " << nameOf(result.type)
                      << ", which have no implicit conversion; use cast()";
      return {};
    }
  if (!hasTile)
    result.type = number;
  else if (hasReal && !isFloat(result.type))
    result.type = f32;
  for (auto [operand, value] : llvm::zip(operands, values)) {
    mlir::Value operandValue = value ? call.broadcast(call.cast(value, result.type), result.shape)
                                     : call.constant(*Tracer::literalOf(*operand), result.type, result.shape);
    if (!operandValue)
      return {};
    result.values.push_back(operandValue);
  }
  return result;
}

} // namespace kiln
