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

/// Tiles without one dimension, null if they are not known to be constant along it.
using WithoutDim = DenseMap<Value, Value>;

static Value makeWithoutDim(Value tile, int64_t dim, OpBuilder &builder, WithoutDim &made);

/// A tile that is constant along `dim`, without that dimension; a scalar if no other is left. Null if it is not known
/// to be constant. Each operand of several others is visited once.
static Value withoutDim(Value tile, int64_t dim, OpBuilder &builder, WithoutDim &made) {
  if (auto found = made.find(tile); found != made.end())
    return found->second;
  const Value result = makeWithoutDim(tile, dim, builder, made);
  made[tile] = result;
  return result;
}

static Value makeWithoutDim(Value tile, int64_t dim, OpBuilder &builder, WithoutDim &made) {
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
    const Value left = withoutDim(add.getLhs(), dim, builder, made);
    const Value right = left ? withoutDim(add.getRhs(), dim, builder, made) : left;
    return right ? Value(arith::AddIOp::create(builder, loc, left, right)) : Value();
  }
  if (auto convert = tile.getDefiningOp<CastOp>()) {
    Value source = withoutDim(convert.getSource(), dim, builder, made);
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

/// Whether the tile's elements keep their order if dimension `dim` of the index becomes the block of `axis`, which
/// moves it after the other dimensions of the index and the preceding blocks.
static bool keepsOrder(AccessOp access, int64_t axis, int64_t dim) {
  const ArrayRef<int64_t> shape = access.getTile().getType().getShape();
  const int64_t end = access.getBlockDim(axis);
  return llvm::all_of(shape.slice(dim + 1, end - dim - 1), [](int64_t extent) { return extent == 1; });
}

FailureOr<BlockAccess> withBlockForRun(AccessOp access, OpBuilder &builder) {
  const RankedTensorType tile = access.getTile().getType();
  for (int64_t axis = 0; axis < static_cast<int64_t>(access.getSubscripts().size()); ++axis) {
    if (!access.isIndexed(axis))
      continue;
    auto run = runOf(access.getSubscripts()[axis]);
    if (!run || !run->dim || !keepsOrder(access, axis, *run->dim))
      continue;
    BlockAccess made;
    WithoutDim tiles;
    SmallVector<int64_t> blocks, index;
    for (auto [other, subscript] : llvm::enumerate(access.getSubscripts())) {
      const auto at = static_cast<int64_t>(other);
      const bool isIndexed = access.isIndexed(at);
      made.subscripts.push_back(at == axis  ? beginOf(*run, builder, access.getLoc())
                                : isIndexed ? withoutDim(subscript, *run->dim, builder, tiles)
                                            : subscript);
      if (!made.subscripts.back())
        break;
      if (const auto left = dyn_cast<RankedTensorType>(made.subscripts.back().getType()))
        index.assign(left.getShape().begin(), left.getShape().end());
      else // an index tile that was uniform is a block of one element
        blocks.push_back(at == axis  ? tile.getDimSize(*run->dim)
                         : isIndexed ? 1
                                     : tile.getDimSize(access.getBlockDim(at)));
    }
    if (!made.subscripts.back())
      continue;
    made.shape = llvm::to_vector(llvm::concat<int64_t>(index, blocks));
    if (llvm::product_of(made.shape) == tile.getNumElements()) // else an index tile had other dimensions
      return made;
  }
  return failure();
}

} // namespace kiln::tile
