// Accesses of shared memory by one thread. Positions, strides and so addresses are known but for the thread's share; a
// packet is as wide as neighbouring registers, their places and the alignment allow.

#include "lowering/gpu/ThreadCode.h"

#include "lowering/analysis/Divisibility.h"

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
        element(tile.getElementType().isInteger(1) ? code.builder.getI8Type() : tile.getElementType()), code(code),
        strides(strides), vector(vectorFor(offset)) {
    address = code.add(code.held(buffer), offset ? code.held(offset) : Value());
    for (unsigned dim = 0; dim < layout.rank(); ++dim)
      address = code.add(address, code.times(code.shareOf(attribute, dim), strides[dim]));
  }

  int64_t displacement(int64_t stored) const {
    int64_t sum = 0;
    for (const auto [position, stride] : llvm::zip(layout.positionOf(stored), strides))
      sum += position * stride;
    return sum;
  }
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

private:
  int64_t vectorFor(Value offset) const;

  ThreadCode &code;
  const ArrayRef<int64_t> strides;

public:
  const int64_t vector; // elements of a packet
  Value address;
};

/// The widest packet, up to 16 bytes, whose elements are neighbours within the tile and whose addresses it divides.
int64_t SharedTile::vectorFor(Value offset) const {
  const int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  int64_t widest = std::min<int64_t>(16 / bytes, int64_t{1} << layout.regBits());
  int64_t alignment = offset ? divisorOf(offset) : 16; // of what threads add
  for (unsigned dim = 0; dim < layout.rank(); ++dim)
    for (const Hw part : {Hw::lane, Hw::warp})
      for (const simt::BitField &field : layout.fieldsOf(part, dim))
        alignment = std::gcd(alignment, strides[dim] << field.to);
  const auto fits = [&](int64_t vector) {
    if (alignment % (vector * bytes) != 0)
      return false;
    for (int64_t stored = 0; stored < layout.numStored(); stored += vector) {
      const int64_t first = displacement(stored);
      if (first % (vector * bytes) != 0)
        return false;
      for (int64_t next = 1; next < vector; ++next)
        if (displacement(stored + next) != first + next * bytes)
          return false;
    }
    // A packet that crosses the tile's end would be neither in nor out.
    return llvm::all_of(layout.shape().dims(),
                        [&](const simt::Extent &extent) { return !extent.isPadded() || extent.size % vector == 0; });
  };
  while (widest > 1 && !fits(widest))
    widest /= 2;
  return widest;
}

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
