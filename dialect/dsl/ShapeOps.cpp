// Programs, creation, shapes, reductions and the matrix product.

#include "dialect/dsl/Tracer.h"

#include "dialect/tile/TypeRules.h"

using namespace mlir;

namespace kiln {

/// Whether the launch grid has the axis; otherwise reports an error.
static bool checkGridAxis(Call &call, int axis) {
  if (axis >= 0 && axis <= 2)
    return true;
  return call.expected() << "a grid axis from 0 to 2, but got " << axis;
}

Tile program_id(int axis, Loc loc) {
  Call call("program_id", loc);
  if (axis == 2 && call.tracer.example)
    return call.result(call.tracer.read(call.tracer.example->program, loc));
  return checkGridAxis(call, axis) ? call.result(call.emit<tile::ProgramIdOp>(axis)) : call.poison();
}

Tile num_programs(int axis, Loc loc) {
  Call call("num_programs", loc);
  if (axis == 2 && call.tracer.example)
    return call.result(call.tracer.read(call.tracer.example->programs, loc));
  return checkGridAxis(call, axis) ? call.result(call.emit<tile::NumProgramsOp>(axis)) : call.poison();
}

static int64_t countOf(const Shape &shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

// --- Creation --------------------------------------------------------------------------------------------------------

Tile zeros(Type type, TileExtents shape, Loc loc) {
  Call call("zeros", loc);
  return call.checkShape(shape) ? call.result(call.constant({}, type, shape)) : call.poison();
}

Tile full(Type type, TileExtents shape, At value, Loc loc) {
  Call call("full", loc);
  if (!call.checkShape(shape))
    return call.poison();
  auto number = Tracer::literalOf(value);
  if (number && (isFloat(type) || !number->isFloating))
    return call.result(call.constant(*number, type, shape));
  mlir::Value scalar = call.value(value);
  if (scalar && !shapeOf(scalar).empty())
    return call.expected() << "a number or a scalar to fill with, but got " << describe(scalar) << "; use broadcast()";
  if (!scalar || !checkCast(call, scalar, type))
    return call.poison();
  return call.result(call.broadcast(call.cast(scalar, type), shape));
}

Tile constant(Type type, TileExtents shape, const std::vector<double> &numbers, Loc loc) {
  Call call("constant", loc);
  if (!call.checkShape(shape))
    return call.poison();
  if (static_cast<int64_t>(numbers.size()) != countOf(shape))
    return call.expected() << countOf(shape) << (countOf(shape) == 1 ? " number" : " numbers") << " for shape "
                           << textOf(shape) << ", but got " << numbers.size();
  return call.result(call.constants(numbers, type, shape));
}

Tile iota(int64_t count, Type type, Loc loc) {
  Call call("iota", loc);
  if (!call.checkShape({count}))
    return call.poison();
  if (type != i32 && type != i64)
    return call.expected() << "type i32 or i64, but got " << nameOf(type);
  return call.result(call.emit<tile::IotaOp>(typeOf(call.tracer.builder.getContext(), type, {count})));
}

// --- Shape -----------------------------------------------------------------------------------------------------------

Tile reshape(At x, TileExtents shape) {
  Call call("reshape", x.loc);
  mlir::Value value = call.value(x);
  if (!value)
    return call.poison();
  const int64_t elements = countOf(shapeOf(value));
  const Shape wanted = shape;
  const auto open = llvm::find(shape, -1);
  if (open != shape.end())
    *open = 1; // found below
  if (!call.checkShape(shape))
    return call.poison();
  if (open != shape.end() && elements % countOf(shape) == 0)
    *open = elements / countOf(shape);
  if (elements != countOf(shape))
    return call.expected() << "a shape of " << elements << " elements for " << describe(value) << ", but got "
                           << textOf(wanted);
  return call.result(call.reshape(value, shape));
}

Tile transpose(At x, std::vector<int> order) {
  Call call("transpose", x.loc);
  mlir::Value value = call.value(x);
  if (!value)
    return call.poison();
  Shape from = shapeOf(value), to;
  int rank = static_cast<int>(from.size());
  if (order.empty() && rank < 2)
    return call.expected() << "a tile of rank 2 or more, but got " << describe(value);
  if (order.empty()) {
    for (int axis = 0; axis < rank; ++axis)
      order.push_back(axis);
    std::swap(order[rank - 1], order[rank - 2]);
  }
  std::vector<int> sorted = order;
  llvm::sort(sorted);
  bool isPermutation = static_cast<int>(order.size()) == rank;
  for (int axis = 0; isPermutation && axis < rank; ++axis)
    isPermutation = sorted[axis] == axis;
  if (!isPermutation) {
    std::string text;
    for (int axis : order)
      text += (text.empty() ? "" : ", ") + std::to_string(axis);
    return call.expected() << "each of the " << rank << " dimensions once, but got order [" << text << "]";
  }
  for (int axis : order)
    to.push_back(from[axis]);
  SmallVector<int64_t> permutation(order.begin(), order.end());
  return call.result(
      call.emit<tile::TransposeOp>(typeOf(value.getContext(), elementOf(value), to), value, permutation));
}

Tile broadcast(At x, TileExtents shape) {
  Call call("broadcast", x.loc);
  mlir::Value value = call.value(x);
  if (!value || !call.checkShape(shape))
    return call.poison();
  auto common = broadcastShape(shapeOf(value), shape);
  if (!common || *common != shape)
    return call.expected() << "a tile that broadcasts to " << textOf(shape) << ", but got " << describe(value);
  return call.result(call.broadcast(value, shape));
}

/// The nonnegative form of `axis` among `count`. Reports an error and returns none if it is outside.
static std::optional<int64_t> normalAxis(Call &call, int64_t axis, int64_t count) {
  if (axis >= -count && axis < count)
    return axis < 0 ? axis + count : axis;
  return call.expected() << "an axis from " << -count << " to " << count - 1 << ", but got " << axis;
}

Tile unsqueeze(At x, int axis) {
  Call call("unsqueeze", x.loc);
  mlir::Value value = call.value(x);
  if (!value)
    return call.poison();
  Shape shape = shapeOf(value);
  auto at = normalAxis(call, axis, shape.size() + 1);
  if (!at)
    return call.poison();
  shape.insert(shape.begin() + *at, 1);
  return call.checkShape(shape) ? call.result(call.reshape(value, shape)) : call.poison();
}

Tile squeeze(At x, int axis) {
  Call call("squeeze", x.loc);
  mlir::Value value = call.value(x);
  const auto at = value ? axisOf(call, value, axis) : std::nullopt;
  if (!at)
    return call.poison();
  Shape shape = shapeOf(value);
  if (shape[*at] != 1)
    return call.expected() << "an axis of extent 1, but got axis " << axis << " of " << describe(value);
  shape.erase(shape.begin() + *at);
  return call.result(call.reshape(value, shape));
}

Tile roll(At x, int64_t by, int axis) {
  Call call("roll", x.loc);
  mlir::Value value = call.value(x);
  if (!value)
    return call.poison();
  const Shape shape = shapeOf(value);
  if (shape.empty())
    return call.expected() << "a tile of rank 1 or more, but got " << describeTile(value);
  const auto at = normalAxis(call, axis, shape.size());
  if (!at)
    return call.poison();
  return call.result(call.emit<tile::RotateOp>(value, llvm::mod(by, shape[*at]), *at));
}

// --- Reductions ------------------------------------------------------------------------------------------------------

/// The sorted, nonnegative axes of a tile of `rank`. Reports an error and returns none if they are not distinct.
static std::optional<SmallVector<int64_t>> normalAxes(Call &call, const Axes &axes, int64_t rank) {
  SmallVector<int64_t> normal;
  if (axes.numbers == std::vector{everywhere})
    normal = llvm::to_vector(llvm::seq(rank));
  else
    for (int axis : axes.numbers) {
      auto at = normalAxis(call, axis, rank);
      if (!at)
        return {};
      normal.push_back(*at);
    }
  llvm::sort(normal);
  if (!normal.empty() && llvm::adjacent_find(normal) == normal.end())
    return normal;
  std::string text;
  for (int axis : axes.numbers)
    text += (text.empty() ? "" : ", ") + std::to_string(axis);
  return call.expected() << "different axes, at least one, but got [" << text << "]";
}

/// `value` reduced along one axis.
static mlir::Value reduceAxis(Call &call, tile::ReduceKind kind, mlir::Value value, int64_t axis) {
  mlir::Type type = tile::ReduceOp::resultType(kind, cast<RankedTensorType>(value.getType()), axis);
  const Type from = elementOf(value);
  const bool compares = kind == tile::ReduceKind::Max || kind == tile::ReduceKind::Min;
  const bool isIndex = kind == tile::ReduceKind::ArgMax;
  const bool isUnsignedOp = isUnsigned(from) && (compares || isIndex);
  auto op = call.emit<tile::ReduceOp>(type, kind, value, axis);
  tile::setUnsigned(op, isUnsignedOp);
  return call.of(isIndex ? i32 : from, op);
}

/// The tile with these axes merged, in order, into the last one.
static mlir::Value mergeAxes(Call &call, mlir::Value value, ArrayRef<int64_t> axes) {
  Shape from = shapeOf(value), permuted, merged;
  SmallVector<int64_t> order;
  for (int64_t axis = 0; axis < static_cast<int64_t>(from.size()); ++axis)
    if (!llvm::is_contained(axes, axis))
      order.push_back(axis);
  for (int64_t axis : order)
    merged.push_back(from[axis]);
  order.append(axes.begin(), axes.end());
  for (int64_t axis : order)
    permuted.push_back(from[axis]);
  merged.push_back(countOf(Shape(permuted.end() - axes.size(), permuted.end())));
  if (!llvm::is_sorted(order))
    value = call.emit<tile::TransposeOp>(typeOf(value.getContext(), elementOf(value), permuted), value, order);
  return call.reshape(value, merged);
}

static bool isBitwise(tile::ReduceKind kind) {
  return kind == tile::ReduceKind::And || kind == tile::ReduceKind::Or || kind == tile::ReduceKind::Xor;
}

/// `value` reduced along all `axes`, the last one first. Sums and products are rounded to a narrow type once.
static mlir::Value reduceAxes(Call &call, tile::ReduceKind kind, mlir::Value value, ArrayRef<int64_t> axes) {
  using tile::ReduceKind;
  const Type from = elementOf(value);
  const bool isSeveral = axes.size() > 1, isTotal = kind == ReduceKind::Sum || kind == ReduceKind::Product;
  // Booleans are compared as 0 and 1; sums and products of small integers need more bits.
  if (isTotal && !isFloat(from))
    value = call.cast(value, accumulatorType(from));
  else if (from == boolean)
    value = call.cast(value, i8);
  else if (isTotal && isSeveral && isFloat(from))
    value = call.cast(value, std::max(from, f32));
  if (kind == ReduceKind::ArgMax && isSeveral) {
    value = mergeAxes(call, value, axes);
    return reduceAxis(call, kind, value, shapeOf(value).size() - 1);
  }
  for (int64_t axis : llvm::reverse(axes))
    value = reduceAxis(call, kind, value, axis);
  const bool keepsType = kind != ReduceKind::ArgMax && (!isTotal || isFloat(from));
  return keepsType ? call.cast(value, from) : value;
}

/// Numbers in the opposite order: the least of x becomes the greatest. NaN stays NaN.
static mlir::Value reversed(Call &call, mlir::Value value) {
  const Type type = elementOf(value);
  if (isFloat(type) && bytesOf(type) == 1) // their arithmetic saturates infinities
    value = call.cast(value, f32);
  if (isFloat(type))
    return call.emit<arith::NegFOp>(value);
  return call.emit<arith::XOrIOp>(value, call.constant(Literal::allOnes(type), type, shapeOf(value)));
}

static Tile reduce(const char *name, tile::ReduceKind kind, const At &x, const Axes &axes, bool keep,
                   bool ofReversed = false) {
  Call call(name, x.loc);
  mlir::Value value = call.value(x);
  if (!value)
    return call.poison();
  Shape shape = shapeOf(value);
  if (shape.empty()) {
    call.expected() << "a tile of rank 1 or more, but got " << describeTile(value);
    return call.poison();
  }
  if (!checkArithmetic(call, value))
    return call.poison();
  if (isBitwise(kind) && isFloat(elementOf(value))) {
    call.expected() << "integers or booleans, but got " << describe(value) << "; use bitcast()";
    return call.poison();
  }
  auto at = normalAxes(call, axes, shape.size());
  if (!at)
    return call.poison();
  mlir::Value result = reduceAxes(call, kind, ofReversed ? reversed(call, value) : value, *at);
  for (int64_t axis : *at)
    shape[axis] = 1;
  return call.result(keep ? call.reshape(result, shape) : result);
}

Tile sum(At x, Axes axes, bool keep) { return reduce("sum", tile::ReduceKind::Sum, x, axes, keep); }
Tile prod(At x, Axes axes, bool keep) { return reduce("prod", tile::ReduceKind::Product, x, axes, keep); }
Tile reduce_max(At x, Axes axes, bool keep) { return reduce("reduce_max", tile::ReduceKind::Max, x, axes, keep); }
Tile reduce_min(At x, Axes axes, bool keep) { return reduce("reduce_min", tile::ReduceKind::Min, x, axes, keep); }
Tile reduce_and(At x, Axes axes, bool keep) { return reduce("reduce_and", tile::ReduceKind::And, x, axes, keep); }
Tile reduce_or(At x, Axes axes, bool keep) { return reduce("reduce_or", tile::ReduceKind::Or, x, axes, keep); }
Tile reduce_xor(At x, Axes axes, bool keep) { return reduce("reduce_xor", tile::ReduceKind::Xor, x, axes, keep); }
Tile argmax(At x, Axes axes, bool keep) { return reduce("argmax", tile::ReduceKind::ArgMax, x, axes, keep); }
Tile argmin(At x, Axes axes, bool keep) { return reduce("argmin", tile::ReduceKind::ArgMax, x, axes, keep, true); }

// --- Matrix product --------------------------------------------------------------------------------------------------

/// Reports unless `a` and `b` can be multiplied; returns the accumulator's type.
static std::optional<Type> checkFactors(Call &call, mlir::Value a, mlir::Value b) {
  Shape left = shapeOf(a), right = shapeOf(b);
  const size_t rank = left.size();
  if (rank < 2 || right.size() != rank)
    return call.expected() << "tiles of the same rank, 2 or more, but got " << describe(a) << " and "
                           << describeTile(b);
  if (!std::equal(left.begin(), left.end() - 2, right.begin()))
    return call.expected() << "leading extents to match, but got " << textOf(left) << " and " << textOf(right)
                           << "; use broadcast()";
  if (left[rank - 1] != right[rank - 2])
    return call.expected() << "inner extents to match, but got " << textOf(left) << " and " << textOf(right);
  const auto isByte = [](mlir::Value x) {
    return isFloat(elementOf(x)) && bytesOf(elementOf(x)) == 1 && elementOf(x) != f8e8m0;
  };
  const auto isByteInteger = [](mlir::Value x) { return elementOf(x) == i8 || elementOf(x) == u8; };
  if (elementOf(a) != elementOf(b) && !(isByte(a) && isByte(b)) && !(isByteInteger(a) && isByteInteger(b)))
    return call.expected() << "operands of one type, but got " << nameOf(elementOf(a)) << " and "
                           << nameOf(elementOf(b)) << "; use cast()";
  mlir::Type type = tile::sumTypeOf(getElementTypeOrSelf(a.getType()));
  if (!type)
    return call.expected() << "operands of type " << tile::dotOperands << " or u8, but got " << nameOf(elementOf(a));
  return static_cast<Type>(*tile::typeNumber(type));
}

/// The shape of the product.
static Shape sumsOf(mlir::Value a, mlir::Value b) {
  Shape shape = shapeOf(a);
  shape.back() = shapeOf(b).back();
  return shape;
}

/// A product of 8-bit integers with one or two unsigned operands. It is computed by a product of signed integers:
/// unsigned elements are reduced by 128.
///
///     Σ (a + 128) · (b + 128) = Σ a · b + 128 · Σ b + 128 · Σ a + 128² · K
static Tile productOfNaturals(Call &call, mlir::Value a, mlir::Value b, mlir::Value acc) {
  const Line at{call.loc};
  const auto lowered = [&](mlir::Value x) {
    const Tile factor = call.result(x);
    return isUnsigned(elementOf(x)) ? bitcast(at(at(factor) ^ at(128)), i8) : factor;
  };
  const Tile left = lowered(a), right = lowered(b);
  Tile total = dot(at(left), at(right), at(call.result(acc)));
  if (isUnsigned(elementOf(a)))
    total = at(total) + at(at(sum(at(right), -2, keep)) * at(128));
  if (isUnsigned(elementOf(b)))
    total = at(total) + at(at(sum(at(left), -1, keep)) * at(128));
  if (isUnsigned(elementOf(a)) && isUnsigned(elementOf(b)))
    total = at(total) + at(static_cast<int32_t>(128 * 128 * shapeOf(a).back()));
  return total;
}

static Tile product(Call &call, mlir::Value a, mlir::Value b, mlir::Value acc, Precision precision) {
  if (isUnsigned(elementOf(a)) || isUnsigned(elementOf(b)))
    return productOfNaturals(call, a, b, acc);
  static_assert(static_cast<int>(Precision::bf16x3) == static_cast<int>(tile::Precision::BF16x3));
  return call.result(call.emit<tile::DotOp>(a, b, acc, static_cast<tile::Precision>(precision)));
}

Tile dot(At a, At b, At acc, Precision precision) {
  Call call("dot", a.loc);
  mlir::Value left = call.value(a), right = call.value(b), sum = call.value(acc);
  if (!left || !right || !sum)
    return call.poison();
  auto type = checkFactors(call, left, right);
  if (!type)
    return call.poison();
  Shape shape = sumsOf(left, right);
  if (shapeOf(sum) != shape || elementOf(sum) != *type)
    return call.expected() << "an accumulator " << nameOf(*type) << "[" << textOf(shape) << "], but got "
                           << describe(sum);
  return product(call, left, right, sum, precision);
}

Tile dot(At a, At b, Precision precision) {
  Call call("dot", a.loc);
  mlir::Value left = call.value(a), right = call.value(b);
  if (!left || !right)
    return call.poison();
  auto type = checkFactors(call, left, right);
  if (!type)
    return call.poison();
  return product(call, left, right, call.constant({}, *type, sumsOf(left, right)), precision);
}

} // namespace kiln
