// Converts sorts to sorts of powers of two, padded with the greatest key. It converts those of other extents, and those
// of which only the first elements are needed.
//
// The smallest few elements are selected by blocks of that size. The elementwise minimum of an ascending and a
// descending block has the smallest elements of both, first ascending and then descending (`simt.bitonic`). The last
// level of a sort orders them. Each step halves the number of blocks.

#include "lowering/Passes.h"

#include "dialect/simt/layout/Blocked.h"
#include "dialect/tile/TileDialect.h"
#include "lowering/gpu/Threads.h"
#include "lowering/tile/Emit.h"

#include "llvm/Support/MathExtras.h"

#include <array>

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
static Value takeFirst(OpBuilder &builder, Location loc, Value tile, int64_t axis, int64_t extent) {
  const RankedTensorType type = withExtent(tile, axis, extent);
  if (type == tile.getType())
    return tile;
  return tile::ExtractOp::create(builder, loc, type, tile, SmallVector<int64_t>(type.getRank(), 0),
                                 SmallVector<int64_t>(type.getRank(), 1));
}

/// The tile padded to `extent` with the greatest number: the tile is repeated, and extra elements are replaced.
static Value padTo(OpBuilder &builder, Location loc, Value tile, int64_t axis, int64_t extent) {
  const auto from = cast<RankedTensorType>(tile.getType());
  const int64_t valid = from.getDimSize(axis);
  if (valid == extent)
    return tile;
  Emit emit(builder, loc);
  const auto rows = [&](int64_t outer, int64_t inner) { // rank 3 for any tile
    return RankedTensorType::get({outer, valid, inner}, from.getElementType());
  };
  const auto dims = from.getShape();
  const int64_t outer = llvm::product_of(dims.take_front(axis)), inner = llvm::product_of(dims.drop_front(axis + 1));
  const Value flat = tile::ReshapeOp::create(builder, loc, rows(outer, inner), tile);
  const auto shape = [&](ArrayRef<int64_t> extents) { return RankedTensorType::get(extents, from.getElementType()); };
  Value twice = tile::ReshapeOp::create(builder, loc, shape({outer, 1, valid, inner}), flat);
  twice = tile::BroadcastOp::create(builder, loc, shape({outer, 2, valid, inner}), twice);
  twice = tile::ReshapeOp::create(builder, loc, shape({outer, 2 * valid, inner}), twice);
  const Value more = takeFirst(builder, loc, twice, 1, extent);
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

/// A tile of keys, and optionally one of ties.
using Tiles = SmallVector<Value, 2>;

/// Selects the smallest elements of lines by blocks; the extents of lines and blocks are powers of two.
class Selection {
public:
  Selection(tile::SortOp op, int64_t count) : builder(op), loc(op.getLoc()), emit(builder, loc), op(op), count(count) {}

  /// The smallest `count` of each line, in order.
  Tiles select(const Tiles &sources) {
    const ArrayRef<int64_t> dims = cast<RankedTensorType>(sources[0].getType()).getShape();
    const auto axis = static_cast<int64_t>(op.getAxis());
    const int64_t outer = llvm::product_of(dims.take_front(axis)), inner = llvm::product_of(dims.drop_front(axis + 1));
    int64_t blocks = dims[axis] / count;
    Tiles tiles = reshaped(sources, {outer, blocks, count, inner});
    bool isBitonic = false;
    for (; blocks > 1; blocks /= 2, isBitonic = true)
      tiles = smaller(sorted(half(tiles, 0, blocks / 2), isBitonic),
                      complemented(sorted(complemented(half(tiles, blocks / 2, blocks / 2)), isBitonic)));
    tiles = sorted(tiles, isBitonic);
    SmallVector<int64_t> shape(dims);
    shape[axis] = count;
    return reshaped(tiles, shape);
  }

private:
  Tiles each(const Tiles &tiles, function_ref<Value(Value, RankedTensorType)> change) {
    return llvm::map_to_vector<2>(tiles,
                                  [&](Value tile) { return change(tile, cast<RankedTensorType>(tile.getType())); });
  }
  Tiles reshaped(const Tiles &tiles, ArrayRef<int64_t> shape) {
    return each(tiles, [&](Value tile, RankedTensorType type) -> Value {
      return tile::ReshapeOp::create(builder, loc, RankedTensorType::get(shape, type.getElementType()), tile);
    });
  }
  Tiles half(const Tiles &tiles, int64_t begin, int64_t blocks) {
    return each(tiles, [&](Value tile, RankedTensorType) -> Value {
      return tile::ExtractOp::create(builder, loc, withExtent(tile, 1, blocks), tile,
                                     SmallVector<int64_t>{0, begin, 0, 0}, SmallVector<int64_t>(4, 1));
    });
  }
  /// Keys of the opposite order.
  Tiles complemented(const Tiles &tiles) {
    return each(tiles, [&](Value tile, RankedTensorType type) -> Value {
      return arith::XOrIOp::create(builder, loc, tile, emit.integer(type, -1));
    });
  }
  Tiles sorted(const Tiles &tiles, bool isBitonic) {
    const Value ties = tiles.size() > 1 ? tiles[1] : Value();
    const Type keys = tiles[0].getType(), positions = typeLike(keys, builder.getI32Type());
    auto sort = tile::SortOp::create(builder, loc, keys, positions, tiles[0], ties, 2, /*descending=*/false);
    if (isBitonic)
      sort->setAttr("simt.bitonic", builder.getUnitAttr());
    sort->setAttr("simt.layout", layoutOf(cast<RankedTensorType>(keys).getShape()));
    return ties ? Tiles{sort.getResult(), sort.getPositions()} : Tiles{sort.getResult()};
  }
  /// A layout with blocks within warps, so that no stage needs shared memory: in registers if adjacent elements belong
  /// to other lines, otherwise in lanes. Other lines follow, and other blocks last, so that most merges are within a
  /// thread.
  simt::LayoutAttr layoutOf(ArrayRef<int64_t> shape) {
    constexpr int64_t maxOfLane = 64;
    const bool isOfLane = shape[3] > 1 && count <= maxOfLane;
    const int64_t each = isOfLane ? count : std::max<int64_t>(1, count / simt::numLanes);
    const auto warps = static_cast<unsigned>(warpsOf(op->getParentOfType<func::FuncOp>()));
    const std::array<unsigned, 4> order = isOfLane ? std::array{3u, 0u, 2u, 1u} : std::array{2u, 3u, 0u, 1u};
    return simt::LayoutAttr::get(builder.getContext(), simt::blocked(shape, order, {1, 1, each, 1}, warps));
  }
  Tiles smaller(const Tiles &a, const Tiles &b) {
    if (a.size() == 1)
      return {arith::MinSIOp::create(builder, loc, a[0], b[0])};
    const Value equal = emit.compare(arith::CmpIPredicate::eq, a[0], b[0]),
                less = emit.compare(arith::CmpIPredicate::slt, a[0], b[0]),
                tie = emit.compare(arith::CmpIPredicate::slt, a[1], b[1]);
    const Value isFirst = emit.make<arith::OrIOp>(less, emit.make<arith::AndIOp>(equal, tie));
    return {emit.select(isFirst, a[0], b[0]), emit.select(isFirst, a[1], b[1])};
  }

  OpBuilder builder;
  const Location loc;
  Emit emit;
  tile::SortOp op;
  const int64_t count;
};

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
    const auto extent = static_cast<int64_t>(llvm::PowerOf2Ceil(op.getExtent())),
               count = static_cast<int64_t>(llvm::PowerOf2Ceil(op.getCount()));
    const bool isFew = 4 * count <= extent; // for half of them a selection saves no stage
    if (extent == op.getExtent() && extent == op.getCount())
      return;
    OpBuilder builder(op);
    const Location loc = op.getLoc();
    Tiles tiles = {padTo(builder, loc, op.getSource(), axis, extent)};
    if (op.getTies())
      tiles.push_back(padTo(builder, loc, op.getTies(), axis, extent));
    if (isFew) {
      tiles = Selection(op, count).select(tiles);
    } else {
      auto sort = tile::SortOp::create(builder, loc, tiles[0].getType(), withExtent(op.getPositions(), axis, extent),
                                       tiles[0], op.getTies() ? tiles[1] : Value(), axis, /*descending=*/false);
      tiles.assign(sort.getResults().begin(), sort.getResults().end());
    }
    for (auto [result, tile] : llvm::zip(op.getResults(), tiles))
      result.replaceAllUsesWith(takeFirst(builder, loc, tile, axis, op.getCount()));
    op.erase();
  }
};
} // namespace

} // namespace kiln::lowering::gpu
