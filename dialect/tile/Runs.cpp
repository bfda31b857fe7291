// Recognises index tiles of consecutive positions: `n + iota(64)` is a block that begins at n.

#include "dialect/tile/AccessRules.h"
#include "dialect/tile/TypeRules.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace kiln::tile {

namespace {
/// A tile that begins at a sum of i64 scalars and a constant, and increases by 1 along `dim`, or is uniform without
/// one.
struct Run {
  SmallVector<Value, 2> terms;
  int64_t number = 0;
  std::optional<int64_t> dim;
};
} // namespace

static std::optional<Run> runOf(Value tile, int effort = 8);

/// The dimension of a move's result that corresponds exactly to the source's dimension `inner`, if any.
static std::optional<int64_t> dimAbove(AffineMap map, int64_t inner) {
  auto dim = dyn_cast<AffineDimExpr>(map.getResult(inner));
  return dim ? std::optional<int64_t>(dim.getPosition()) : std::nullopt;
}

/// Broadcasts, reshapes with extents of 1, and transpositions keep a run.
static std::optional<Run> movedRun(MoveOp move, int effort) {
  if (!isa<RankedTensorType>(move.getMoved().getType())) {
    Run run;
    if (!move.getMoved().getType().isInteger(64))
      return std::nullopt;
    run.terms.push_back(move.getMoved());
    return run;
  }
  auto run = runOf(move.getMoved(), effort);
  if (!run || !run->dim)
    return run;
  const AffineMap map = move.getMoveMap();
  auto dim = dimAbove(map, *run->dim);
  // A reshape's map is a sum of all dimensions; it keeps those of other extents than 1 in order.
  if (auto reshape = dyn_cast<ReshapeOp>(move.getOperation()); reshape && !dim) {
    auto from = shapeOf(move.getMoved().getType()), to = shapeOf(reshape.getType());
    if (from.size() != 1 || llvm::count(to, from[0]) < 1 || llvm::product_of(to) != from[0])
      return std::nullopt;
    dim = std::distance(to.begin(), llvm::find(to, from[0]));
  }
  if (!dim)
    return std::nullopt;
  run->dim = dim;
  return run;
}

static std::optional<Run> runOf(Value tile, int effort) {
  Operation *op = tile.getDefiningOp();
  if (!op || effort == 0)
    return std::nullopt;
  Run run;
  APInt constant;
  if (matchPattern(tile, m_ConstantInt(&constant))) {
    run.number = constant.getSExtValue();
    return run;
  }
  if (isa<IotaOp>(op)) {
    run.dim = 0;
    return run;
  }
  if (auto cast = dyn_cast<CastOp>(op)) { // if the numbers do not wrap
    auto from = runOf(cast.getSource(), effort - 1);
    const bool widens = getElementTypeOrSelf(cast.getSource().getType()).isInteger(32) &&
                        getElementTypeOrSelf(cast.getType()).isInteger(64);
    return widens && from && from->terms.empty() && from->number == 0 ? from : std::nullopt;
  }
  if (auto move = dyn_cast<MoveOp>(op))
    return movedRun(move, effort - 1);
  auto add = dyn_cast<arith::AddIOp>(op);
  if (!add || !getElementTypeOrSelf(add.getType()).isInteger(64))
    return std::nullopt;
  auto left = runOf(add.getLhs(), effort - 1), right = runOf(add.getRhs(), effort - 1);
  if (!left || !right || (left->dim && right->dim))
    return std::nullopt;
  run.terms = left->terms;
  llvm::append_range(run.terms, right->terms);
  run.number = static_cast<int64_t>(static_cast<uint64_t>(left->number) + static_cast<uint64_t>(right->number));
  run.dim = left->dim ? left->dim : right->dim;
  return run;
}

/// The sum of a run's terms and constant, i64.
static Value beginOf(const Run &run, OpBuilder &builder, Location loc) {
  Value sum;
  for (Value term : run.terms)
    sum = sum ? Value(arith::AddIOp::create(builder, loc, sum, term)) : term;
  if (sum && run.number == 0)
    return sum;
  Value number = arith::ConstantIntOp::create(builder, loc, run.number, 64);
  return sum ? Value(arith::AddIOp::create(builder, loc, sum, number)) : number;
}

/// A tile that is constant along `dim`, without that dimension; a scalar if no other is left. Null if it is not known
/// to be constant.
static Value withoutDim(Value tile, int64_t dim, OpBuilder &builder) {
  const Location loc = tile.getLoc();
  const auto type = cast<RankedTensorType>(tile.getType());
  const SmallVector<int64_t> rest = withoutAxis(type.getShape(), dim);
  if (auto run = runOf(tile); run && !run->dim && rest.empty())
    return beginOf(*run, builder, loc);
  if (rest.empty())
    return {};
  const auto restType = RankedTensorType::get(rest, type.getElementType());
  if (auto broadcast = tile.getDefiningOp<BroadcastOp>()) {
    const auto source = broadcast.getSource().getType();
    if (source.getDimSize(dim) != 1)
      return {};
    const auto narrow = RankedTensorType::get(withoutAxis(source.getShape(), dim), source.getElementType());
    Value left = ReshapeOp::create(builder, loc, narrow, broadcast.getSource());
    return narrow == restType ? left : Value(BroadcastOp::create(builder, loc, restType, left));
  }
  if (auto splat = tile.getDefiningOp<SplatOp>())
    return SplatOp::create(builder, loc, restType, splat.getMoved());
  if (auto add = tile.getDefiningOp<arith::AddIOp>()) {
    Value left = withoutDim(add.getLhs(), dim, builder), right = left ? withoutDim(add.getRhs(), dim, builder) : left;
    return right ? Value(arith::AddIOp::create(builder, loc, left, right)) : Value();
  }
  if (auto convert = tile.getDefiningOp<CastOp>()) {
    Value source = withoutDim(convert.getSource(), dim, builder);
    if (!source)
      return {};
    auto again = CastOp::create(builder, loc, restType, source);
    setUnsigned(again, isUnsigned(convert));
    return again;
  }
  Attribute constant;
  if (matchPattern(tile, m_Constant(&constant)))
    if (auto splat = dyn_cast<SplatElementsAttr>(constant))
      return arith::ConstantOp::create(builder, loc,
                                       DenseElementsAttr::get(restType, splat.getSplatValue<Attribute>()));
  return {};
}

/// Whether the tile's dimensions keep their order if dimension `dim` of the index becomes the block of `axis`. The
/// dimension is then after the other dimensions of the index and after the preceding blocks.
static bool keepsOrder(AccessOp access, int64_t axis, int64_t dim) {
  return dim == access.getIndexRank() - 1 && access.getBlockDim(axis) == access.getIndexRank();
}

FailureOr<SmallVector<Value>> withBlockForRun(AccessOp access, OpBuilder &builder) {
  for (int64_t axis = 0; axis < static_cast<int64_t>(access.getSubscripts().size()); ++axis) {
    if (!access.isNamed(axis))
      continue;
    auto run = runOf(access.getSubscripts()[axis]);
    if (!run || !run->dim || !keepsOrder(access, axis, *run->dim))
      continue;
    SmallVector<Value> subscripts;
    for (auto [other, subscript] : llvm::enumerate(access.getSubscripts())) {
      if (static_cast<int64_t>(other) == axis)
        subscripts.push_back(beginOf(*run, builder, access.getLoc()));
      else if (access.isNamed(static_cast<int64_t>(other)))
        subscripts.push_back(withoutDim(subscript, *run->dim, builder));
      else
        subscripts.push_back(subscript);
      if (!subscripts.back())
        break;
    }
    if (llvm::is_contained(subscripts, Value()))
      continue;
    // Other dimensions of the index, of extent 1, remain only if an index tile has them.
    if (access.getIndexRank() > 1 &&
        llvm::none_of(subscripts, [](Value subscript) { return isa<RankedTensorType>(subscript.getType()); }))
      continue;
    return subscripts;
  }
  return failure();
}

} // namespace kiln::tile
