// Accesses of shared memory by one thread. Positions, strides and so addresses are known but for the thread's share; a
// packet is as wide as neighbouring registers, their places and the alignment allow.

#include "lowering/gpu/ThreadCode.h"

#include "lowering/analysis/Divisibility.h"
#include "lowering/gpu/SharedTraffic.h"

using namespace mlir;

namespace kiln::lowering::gpu {

using simt::Hw;
using simt::LayoutAttr;
using simt::TileLayout;

namespace {

/// One tile in one buffer.
class SharedTile {
public:
  SharedTile(ThreadCode &code, RankedTensorType tile, Value buffer, ArrayRef<int64_t> strides, Value offset)
      : attribute(simt::layoutOf(tile)), layout(attribute.getLayout()),
        element(tile.getElementType().isInteger(1) ? code.builder.getI8Type() : tile.getElementType()),
        vector(sharedPacket(layout, element.getIntOrFloatBitWidth() / 8, strides, offset ? divisorOf(offset) : 16)),
        code(code), strides(strides) {
    address = code.add(code.held(buffer), offset ? code.held(offset) : Value());
    for (unsigned dim = 0; dim < layout.rank(); ++dim)
      address = code.add(address, code.times(code.shareOf(attribute, dim), strides[dim]));
  }

  int64_t displacement(int64_t stored) const { return offsetOf(layout.positionOf(stored), strides); }
  /// Whether a packet lies within the tile; null when all do.
  Value isWithin(int64_t stored) {
    Value within;
    for (unsigned dim = 0; dim < layout.rank(); ++dim)
      within = code.both(within, code.isWithin(attribute, stored, dim));
    return within;
  }
  VectorType packet() const { return VectorType::get({vector}, element); }

  const LayoutAttr attribute;
  const TileLayout layout;
  const Type element;
  const int64_t vector; // elements of a packet
  Value address;

private:
  ThreadCode &code;
  const ArrayRef<int64_t> strides;
};

} // namespace

void distributeWrite(ThreadCode &code, simt::WriteOp op) {
  SharedTile tile(code, cast<RankedTensorType>(op.getValue().getType()), op.getBuffer(), op.getStrides(), {});
  Value vector = code.held(op.getValue());
  if (const auto type = cast<VectorType>(vector.getType()); type.getElementType().isInteger(1))
    vector = code.make<arith::ExtUIOp>(typeLike(type, tile.element), vector);
  const auto parts = vector::ToElementsOp::create(code.builder, code.loc, vector);
  const Values elements(parts->getResults());
  const Value owner = code.isOwner(tile.layout);
  for (int64_t stored = 0; stored < tile.layout.numStored(); stored += tile.vector) {
    if (tile.layout.isDead(stored))
      continue;
    const Value part = code.make<vector::FromElementsOp>(tile.packet(), ArrayRef(elements).slice(stored, tile.vector));
    simt::StoreOp::create(code.builder, code.loc, simt::Space::Shared, part, tile.address, tile.displacement(stored),
                          code.both(owner, tile.isWithin(stored)));
  }
}

void distributeRead(ThreadCode &code, simt::ReadOp op) {
  SharedTile tile(code, cast<RankedTensorType>(op.getType()), op.getBuffer(), op.getStrides(), op.getOffset());
  const TypedAttr zero = code.builder.getZeroAttr(tile.element);
  const Value other = code.make<arith::ConstantOp>(DenseElementsAttr::get(tile.packet(), Attribute(zero)));
  Values elements(tile.layout.numStored(), code.make<arith::ConstantOp>(zero));
  for (int64_t stored = 0; stored < tile.layout.numStored(); stored += tile.vector) {
    if (tile.layout.isDead(stored))
      continue;
    const Value within = tile.isWithin(stored);
    const Value loaded = code.make<simt::LoadOp>(tile.packet(), simt::Space::Shared, tile.address,
                                                 tile.displacement(stored), within, within ? other : Value());
    auto parts = vector::ToElementsOp::create(code.builder, code.loc, loaded);
    llvm::copy(parts.getResults(), elements.begin() + stored);
  }
  const auto type = VectorType::get({static_cast<int64_t>(elements.size())}, tile.element);
  Value vector = code.make<vector::FromElementsOp>(type, elements);
  if (cast<RankedTensorType>(op.getType()).getElementType().isInteger(1))
    vector = code.make<arith::TruncIOp>(typeLike(type, code.builder.getI1Type()), vector);
  code.set(op.getResult(), vector);
}

} // namespace kiln::lowering::gpu
