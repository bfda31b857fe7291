// Sorts of extents that are no power of two, and those of which only the first elements are wanted, as whole sorts of
// powers of two: the greatest keys stand behind all others.

#include "lowering/gpu/Passes.h"

#include "dialect/tile/SortOps.h"
#include "lowering/tile/Emit.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace kiln::lowering::gpu {

#define GEN_PASS_DEF_PADSORTS
#include "lowering/gpu/Passes.h.inc"

static RankedTensorType withExtent(Value tile, int64_t axis, int64_t extent) {
  const auto type = cast<RankedTensorType>(tile.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[axis] = extent;
  return RankedTensorType::get(shape, type.getElementType());
}

/// The first elements along the axis.
static Value first(OpBuilder &builder, Location loc, Value tile, int64_t axis, int64_t extent) {
  const RankedTensorType type = withExtent(tile, axis, extent);
  if (type == tile.getType())
    return tile;
  return tile::ExtractOp::create(builder, loc, type, tile, SmallVector<int64_t>(type.getRank(), 0),
                                 SmallVector<int64_t>(type.getRank(), 1));
}

/// The tile, and behind its elements the greatest number until there are `extent`: it is repeated, and what is no
/// element is put in the number's place.
static Value padded(OpBuilder &builder, Location loc, Value tile, int64_t axis, int64_t extent) {
  const auto from = cast<RankedTensorType>(tile.getType());
  const int64_t valid = from.getDimSize(axis);
  if (valid == extent)
    return tile;
  Emit emit(builder, loc);
  const auto rows = [&](int64_t outer, int64_t inner) { // rank 3, whatever the tile's is
    return RankedTensorType::get({outer, valid, inner}, from.getElementType());
  };
  const auto dims = from.getShape();
  const int64_t outer = llvm::product_of(dims.take_front(axis)), inner = llvm::product_of(dims.drop_front(axis + 1));
  const Value flat = tile::ReshapeOp::create(builder, loc, rows(outer, inner), tile);
  const auto shape = [&](ArrayRef<int64_t> extents) { return RankedTensorType::get(extents, from.getElementType()); };
  Value twice = tile::ReshapeOp::create(builder, loc, shape({outer, 1, valid, inner}), flat);
  twice = tile::BroadcastOp::create(builder, loc, shape({outer, 2, valid, inner}), twice);
  twice = tile::ReshapeOp::create(builder, loc, shape({outer, 2 * valid, inner}), twice);
  const Value more = first(builder, loc, twice, 1, extent);
  const auto i32 = builder.getI32Type();
  const Value line = tile::IotaOp::create(builder, loc, RankedTensorType::get({extent}, i32));
  const Value isValid = emit.compare(arith::CmpIPredicate::slt, line, emit.integer(line.getType(), valid));
  const Type i1 = builder.getI1Type();
  Value inside = tile::ReshapeOp::create(builder, loc, RankedTensorType::get({1, extent, 1}, i1), isValid);
  inside = tile::BroadcastOp::create(builder, loc, RankedTensorType::get({outer, extent, inner}, i1), inside);
  const unsigned width = from.getElementTypeBitWidth();
  const Value greatest = emit.integer(more.getType(), APInt::getSignedMaxValue(width).getSExtValue());
  return tile::ReshapeOp::create(builder, loc, withExtent(tile, axis, extent), emit.select(inside, more, greatest));
}

namespace {
struct PadSorts : impl::PadSortsBase<PadSorts> {
  using PadSortsBase::PadSortsBase;

  void runOnOperation() override {
    SmallVector<tile::SortOp> sorts;
    getOperation().walk([&](tile::SortOp sort) { sorts.push_back(sort); });
    for (tile::SortOp sort : sorts)
      pad(sort);
  }

  static void pad(tile::SortOp op) {
    const auto axis = static_cast<int64_t>(op.getAxis());
    const auto extent = static_cast<int64_t>(llvm::PowerOf2Ceil(op.getExtent()));
    if (extent == op.getExtent() && extent == op.getCount())
      return;
    OpBuilder builder(op);
    const Location loc = op.getLoc();
    const Value source = padded(builder, loc, op.getSource(), axis, extent),
                ties = op.getTies() ? padded(builder, loc, op.getTies(), axis, extent) : Value();
    auto sort = tile::SortOp::create(builder, loc, source.getType(), withExtent(op.getPositions(), axis, extent),
                                     source, ties, axis, /*descending=*/false);
    op.getResult().replaceAllUsesWith(first(builder, loc, sort.getResult(), axis, op.getCount()));
    op.getPositions().replaceAllUsesWith(first(builder, loc, sort.getPositions(), axis, op.getCount()));
    op.erase();
  }
};
} // namespace

} // namespace kiln::lowering::gpu
