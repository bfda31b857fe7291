// Strides, bounds and indices of a tile in global memory, and the address and predicate of each of a thread's vectors.

#include "lowering/gpu/GlobalTile.h"

#include "dialect/tile/Limits.h"

#include "lowering/analysis/Integers.h"
#include "lowering/analysis/TileUses.h"
#include "lowering/gpu/Accesses.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;

namespace kiln::lowering::gpu {

/// Differences of bounds fit 32 bits, so they do not overflow.
static constexpr arith::IntegerOverflowFlags noWrap = arith::IntegerOverflowFlags::nsw;

static Type storedType(Type element) {
  return element.isInteger(1) ? IntegerType::get(element.getContext(), 8) : element;
}

GlobalTile::GlobalTile(ThreadCode &code, tile::AccessOp access)
    : GlobalTile(code, access, access.getView(), access.getSubscripts(), access.getTile().getType(),
                 access.isAtomic() ? 1 : getVector(access), access.getMaskIfAny()) {}

GlobalTile::GlobalTile(ThreadCode &code, Operation *op, Value view, ValueRange subscripts, RankedTensorType tile,
                       int64_t vector, Value maskTile)
    : attribute(simt::layoutOf(tile)), layout(attribute.getLayout()), element(storedType(tile.getElementType())),
      vector(vector), bytes(element.getIntOrFloatBitWidth() / 8), code(code),
      fits32(static_cast<bool>(viewFact(view, "tile.fits_32"))), view(code.held(view)), subscripts(subscripts) {
  for (const Value subscript : subscripts)
    if (isa<RankedTensorType>(subscript.getType()))
      index = subscript;
  indexRank = index ? static_cast<unsigned>(cast<RankedTensorType>(index.getType()).getRank()) : 0;
  for (unsigned axis = 0, next = indexRank; axis < axes(); ++axis)
    dims.push_back(isIndexed(axis) ? 0 : next++);
  findStrides(cast<MemRefType>(view.getType()));
  findBounds(cast<MemRefType>(view.getType()), op);
  const Value pointer = code.make<memref::ExtractAlignedPointerAsIndexOp>(this->view);
  base = code.make<arith::IndexCastOp>(code.builder.getI64Type(), pointer);
  for (unsigned axis = 0; axis < axes(); ++axis) {
    if (isIndexed(axis))
      continue;
    if (const Value share = code.threadOffset(attribute, dims[axis])) {
      const Value wide = code.make<arith::ExtUIOp>(code.builder.getI64Type(), share);
      base = code.add(base, code.make<arith::MulIOp>(wide, strideBytes(axis)));
    }
  }
  // The offset of the tile is added last, so that the rest is loop-invariant.
  for (unsigned axis = 0; axis < axes(); ++axis)
    if (!isIndexed(axis))
      base = code.add(base, bytesTo(axis));
  findNames();
  if (maskTile)
    mask = code.elementsOf(maskTile);
}

void GlobalTile::findNames() {
  for (unsigned axis = 0; axis < axes(); ++axis)
    if (isIndexed(axis))
      for (const Value position : code.elementsOf(subscripts[axis]))
        indexTiles[axis].positions.push_back(position.getType().isInteger(64)
                                                 ? position
                                                 : code.make<arith::ExtSIOp>(code.builder.getI64Type(), position));
}

void GlobalTile::findStrides(MemRefType type) {
  strides.assign(type.getStridesAndOffset().first);
  unknownStrides.resize(strides.size());
  if (llvm::none_of(strides, ShapedType::isDynamic))
    return;
  auto metadata = memref::ExtractStridedMetadataOp::create(code.builder, code.loc, view);
  for (const auto [dim, stride] : llvm::enumerate(strides))
    if (ShapedType::isDynamic(stride)) {
      const Type width = fits32 ? code.builder.getI32Type() : code.builder.getI64Type();
      Value known = code.times(code.make<arith::IndexCastOp>(width, metadata.getStrides()[dim]), bytes);
      unknownStrides[dim] = known;
    }
}

Value GlobalTile::strideBytes(unsigned axis) {
  if (!unknownStrides[axis])
    return code.i64(strides[axis] * bytes);
  return fits32 ? code.make<arith::ExtUIOp>(code.builder.getI64Type(), unknownStrides[axis]) : unknownStrides[axis];
}

void GlobalTile::findBounds(MemRefType type, Operation *op) {
  const auto inside = op->getAttrOfType<DenseI64ArrayAttr>("tile.inside");
  const auto extentOf = [&](unsigned dim) { return tile::createDim(code.builder, code.loc, view, dim); };
  indexTiles.resize(axes());
  for (unsigned axis = 0; axis < axes(); ++axis) {
    Bounds &bound = bounds.emplace_back();
    if (isIndexed(axis)) {
      indexTiles[axis].extent = extentOf(axis);
      continue;
    }
    if (inside && llvm::is_contained(inside.asArrayRef(), axis))
      continue;
    const simt::Extent &own = layout.shape()[dims[axis]];
    const Value offset = subscripts[axis];
    APInt known;
    if (matchPattern(offset, m_ConstantInt(&known)) && !type.isDynamicDim(axis) && known.isNonNegative() &&
        known.sle(type.getDimSize(axis) - own.size)) { // the whole tile is inside
      continue;
    }
    if (own.size == 1) {
      bound.inside = isPositionInside(offset, extentOf(axis));
      continue;
    }
    bound = boundsOf(axis, extentOf(axis));
    if (vector > 1 && op->hasAttr("simt.ragged") && dims[axis] == fastest())
      findCut(axis, type);
    const Value share = code.threadOffset(attribute, dims[axis]);
    if (share)
      bound.high = code.make<arith::SubIOp>(bound.high, share, noWrap);
    if (share && bound.low)
      bound.low = code.make<arith::SubIOp>(bound.low, share);
  }
}

/// Tiles begin at multiples of a vector, and `high` is still the same in all threads. So if the view ends within a
/// vector, `high` is not a multiple of a vector, and has the same remainder as the view's extent. If `high` is not a
/// position of the tile, the view does not end in the tile.
void GlobalTile::findCut(unsigned axis, MemRefType type) {
  Value &high = bounds[axis].high;
  cutAxis = axis;
  if (!type.isDynamicDim(axis))
    knownRest = type.getDimSize(axis) % vector;
  rest = code.make<arith::AndIOp>(high, code.i32(vector - 1));
  const Value someRest = code.make<arith::CmpIOp>(arith::CmpIPredicate::ne, rest, code.i32(0));
  const Value size = code.i32(layout.shape()[dims[axis]].size);
  const Value endsHere = code.make<arith::CmpIOp>(arith::CmpIPredicate::ult, high, size);
  cut = code.both(someRest, endsHere);
  high = code.make<arith::AndIOp>(high, code.i32(-vector));
}

unsigned GlobalTile::fastest() const { return layout.shape().unitOf(layout.bases(simt::Hw::reg).front()).dim; }

bool GlobalTile::isNear(Value offset) const {
  const ConstantIntRanges range = rangeOf(offset);
  constexpr int64_t most = (int64_t{1} << abi::smallExtentBits) + (1 << 26);
  return fits32 && range.smin().sge(-most) && range.smax().sle(most);
}

/// The offset as i32, for a view with small extents. A program number times a constant, plus small numbers, may
/// overflow. So the program number is clamped to one with which the offset is beyond every view. Null for other offsets
/// that may overflow.
Value GlobalTile::offsetIn32Bits(Value offset, int effort) {
  constexpr int64_t maxMore = 1 << 26, far = (int64_t{1} << abi::smallExtentBits) + 4 * maxMore, maxFactor = 1 << 24;
  const Type word = code.builder.getI32Type();
  if (!fits32 || effort == 0 || !offset.getType().isInteger(64))
    return {};
  if (isNear(offset))
    return code.make<arith::TruncIOp>(word, code.held(offset));
  if (auto sum = offset.getDefiningOp<arith::AddIOp>()) {
    for (const auto &[large, small] : {std::pair(sum.getLhs(), sum.getRhs()), std::pair(sum.getRhs(), sum.getLhs())}) {
      const ConstantIntRanges range = rangeOf(small);
      if (range.smin().slt(-maxMore) || range.smax().sgt(maxMore))
        continue;
      if (const Value near = offsetIn32Bits(large, effort - 1))
        return code.make<arith::AddIOp>(near, code.make<arith::TruncIOp>(word, code.held(small)), noWrap);
    }
    return {};
  }
  APInt factor(64, 1);
  Value number = offset;
  if (auto product = offset.getDefiningOp<arith::MulIOp>();
      product && matchPattern(product.getRhs(), m_ConstantInt(&factor)))
    number = product.getLhs();
  if (!number.getDefiningOp<tile::ProgramIdOp>() || !factor.isStrictlyPositive() || factor.sgt(maxFactor))
    return {};
  const int64_t most = llvm::divideCeil(far, factor.getSExtValue());
  const Value least = code.make<arith::MinUIOp>(code.held(number), code.i64(most));
  return code.make<arith::MulIOp>(code.make<arith::TruncIOp>(word, least), code.i32(factor.getSExtValue()), noWrap);
}

/// The bytes from the view's first element to the tile's first position along `axis`; arbitrary if the tile is
/// completely outside.
Value GlobalTile::bytesTo(unsigned axis) {
  const Type wide = code.builder.getI64Type();
  if (fits32 && (unknownStrides[axis] || llvm::isInt<32>(strides[axis] * bytes)))
    if (const Value near = offsetIn32Bits(subscripts[axis])) // 32-bit operands: one instruction
      return code.make<arith::MulIOp>(code.make<arith::ExtSIOp>(wide, near),
                                      unknownStrides[axis] ? code.make<arith::ExtSIOp>(wide, unknownStrides[axis])
                                                           : strideBytes(axis));
  return code.make<arith::MulIOp>(code.held(subscripts[axis]), strideBytes(axis));
}

/// Whether `offset` is inside the view, by an unsigned comparison, which also rejects negative ones.
Value GlobalTile::isPositionInside(Value offset, Value extent) {
  const ConstantIntRanges range = rangeOf(offset);
  const bool isWord = range.smin().sge(INT32_MIN) && range.smax().sle(UINT32_MAX);
  Value position = offsetIn32Bits(offset);
  if (!position && fits32 && isWord)
    position = code.make<arith::TruncIOp>(code.builder.getI32Type(), code.held(offset));
  if (position)
    extent = code.make<arith::TruncIOp>(code.builder.getI32Type(), extent);
  else
    position = code.held(offset);
  return code.make<arith::CmpIOp>(arith::CmpIPredicate::ult, position, extent);
}

/// The range of positions in the tile that are inside the view.
GlobalTile::Bounds GlobalTile::boundsOf(unsigned axis, Value extent) {
  constexpr int64_t maxBefore = int64_t{1} << (abi::smallExtentBits - 1);
  if (fits32 && rangeOf(subscripts[axis]).smin().sge(-maxBefore))
    return nearBoundsOf(axis, extent);
  const auto narrow = [&](Value word) { return code.make<arith::TruncIOp>(code.builder.getI32Type(), word); };
  const simt::Extent &own = layout.shape()[dims[axis]];
  const Value offset = code.held(subscripts[axis]);
  Bounds bound;
  // The offset is clamped first, so that no difference overflows.
  Value near = code.make<arith::MinSIOp>(offset, extent);
  if (!isNonNegative(rangeOf(subscripts[axis]))) {
    near = code.make<arith::MaxSIOp>(near, code.i64(-own.padded));
    const Value isBefore = code.make<arith::CmpIOp>(arith::CmpIPredicate::slt, near, code.i64(0));
    bound.low = code.make<arith::SelectOp>(isBefore, narrow(code.make<arith::SubIOp>(code.i64(0), near)), code.i32(0));
  }
  bound.high = narrow(code.make<arith::MinSIOp>(code.make<arith::SubIOp>(extent, near), code.i64(own.size)));
  return bound;
}

/// As above for a small extent and an offset that is not far before the view. The distance to the view's end fits 32
/// bits or is negative; then any negative number will do. Positions before the view do not matter.
GlobalTile::Bounds GlobalTile::nearBoundsOf(unsigned axis, Value extent) {
  const auto narrow = [&](Value word) { return code.make<arith::TruncIOp>(code.builder.getI32Type(), word); };
  const simt::Extent &own = layout.shape()[dims[axis]];
  const Value offset = code.held(subscripts[axis]);
  Bounds bound;
  const Value near = offsetIn32Bits(subscripts[axis]);
  if (near) {
    bound.high = code.make<arith::SubIOp>(narrow(extent), near, noWrap);
  } else {
    const Value distance = code.make<arith::SubIOp>(extent, offset);
    const Value low = narrow(distance), sign = narrow(code.make<arith::ShRSIOp>(distance, code.i64(63)));
    bound.high = code.make<arith::OrIOp>(low, sign);
  }
  if (own.isPadded())
    bound.high = code.make<arith::MinSIOp>(bound.high, code.i32(own.size));
  if (!isNonNegative(rangeOf(subscripts[axis])))
    bound.low = code.make<arith::SubIOp>(code.i32(0), near ? near : narrow(offset));
  return bound;
}

Indices GlobalTile::vectors() const {
  Indices result;
  for (int64_t stored = 0; stored < layout.numStored(); stored += vector)
    if (!layout.isDead(stored))
      result.push_back(stored);
  return result;
}

int64_t GlobalTile::displacement(int64_t stored) const {
  int64_t sum = 0;
  const SmallVector<int64_t> position = layout.positionOf(stored);
  for (unsigned axis = 0; axis < axes(); ++axis)
    if (!unknownStrides[axis] && !isIndexed(axis))
      sum += position[dims[axis]] * strides[axis] * bytes;
  return llvm::isInt<32>(sum) ? sum : 0;
}

int64_t GlobalTile::indexOf(int64_t stored) const {
  const TileLayout own = simt::layoutOf(index).getLayout();
  return *own.storedAt(ArrayRef(layout.positionOf(stored)).take_front(indexRank));
}

Value GlobalTile::address(int64_t stored) {
  const SmallVector<int64_t> position = layout.positionOf(stored);
  SmallVector<int64_t> key;
  int64_t far = 0; // the part that does not fit the displacement
  for (unsigned axis = 0; axis < axes(); ++axis) {
    if (isIndexed(axis))
      key.push_back(indexOf(stored));
    else if (unknownStrides[axis])
      key.push_back(position[dims[axis]]);
    else
      far += position[dims[axis]] * strides[axis] * bytes;
  }
  key.push_back(llvm::isInt<32>(far) ? 0 : far);
  Value &address = addresses[key];
  if (address)
    return address;
  address = base;
  for (unsigned axis = 0; axis < axes(); ++axis)
    if (isIndexed(axis))
      address =
          code.add(address, code.make<arith::MulIOp>(indexTiles[axis].positions[indexOf(stored)], strideBytes(axis)));
    else if (const int64_t known = position[dims[axis]]; unknownStrides[axis] && known)
      address = fits32 ? code.make<simt::AddressOp>(address.getType(), address, unknownStrides[axis],
                                                    code.builder.getI64IntegerAttr(known))
                       : code.add(address, code.times(unknownStrides[axis], known));
  if (key.back())
    address = code.add(address, code.i64(key.back()));
  return address;
}

/// Whether the element at register index `stored` is inside the tile along `dim`; null if it is in all threads.
/// Computed once for each position.
Value GlobalTile::isWithin(int64_t stored, unsigned dim) {
  const auto [entry, isNew] = withins.try_emplace({dim, layout.positionOf(stored)[dim]});
  return isNew ? entry->second = code.isWithin(attribute, stored, dim) : entry->second;
}

Value GlobalTile::isInsideAlong(int64_t stored, unsigned axis) {
  const int64_t position = isIndexed(axis) ? indexOf(stored) : layout.positionOf(stored)[dims[axis]];
  const auto [entry, isNew] = insides.try_emplace({axis, position});
  if (!isNew)
    return entry->second;
  Value here;
  if (isIndexed(axis)) { // unsigned, so that negative ones are too large
    for (unsigned dim = 0; dim < indexRank; ++dim)
      here = code.both(here, isWithin(stored, dim));
    here = code.both(here, code.make<arith::CmpIOp>(arith::CmpIPredicate::ult, indexTiles[axis].positions[position],
                                                    indexTiles[axis].extent));
  } else if (!bounds[axis].high) {
    here = code.both(code.isWithin(attribute, stored, dims[axis]), bounds[axis].inside);
  } else {
    const Value at = code.i32(position);
    here = code.make<arith::CmpIOp>(arith::CmpIPredicate::sgt, bounds[axis].high, at);
    if (bounds[axis].low)
      here = code.both(here, code.make<arith::CmpIOp>(arith::CmpIPredicate::sle, bounds[axis].low, at));
  }
  return insides[{axis, position}] = here;
}

int64_t GlobalTile::positionsAlong(unsigned axis) const {
  if (isIndexed(axis))
    return simt::layoutOf(index).getLayout().numStored();
  const unsigned dim = dims[axis];
  const auto others = layout.bases(simt::Hw::reg).drop_front(llvm::Log2_64(static_cast<uint64_t>(vector)));
  const auto bits = llvm::count_if(others, [&](simt::Vec unit) { return layout.shape().unitOf(unit).dim == dim; });
  return layout.shape()[dim].padded / layout.shape()[dim].core() << bits;
}

Value GlobalTile::isCut(int64_t stored) const {
  return code.make<arith::CmpIOp>(arith::CmpIPredicate::eq, bounds[*cutAxis].high, code.i32(placeOf(stored)));
}

Value GlobalTile::isInRest(int64_t index) const {
  return knownRest ? Value() : code.make<arith::CmpIOp>(arith::CmpIPredicate::sgt, rest, code.i32(index));
}

Value GlobalTile::isInside(int64_t stored, Value also) { return insideBut(std::nullopt, stored, also); }

Value GlobalTile::insideBut(std::optional<unsigned> without, int64_t stored, Value inside) {
  if (byPositions.empty()) {
    byPositions = llvm::to_vector(llvm::seq(axes()));
    llvm::stable_sort(byPositions, [&](unsigned a, unsigned b) { return positionsAlong(a) < positionsAlong(b); });
  }
  for (const unsigned axis : byPositions)
    if (axis != without)
      inside = code.both(inside, isInsideAlong(stored, axis));
  return mask.empty() ? inside : code.both(inside, mask[stored]);
}

Value GlobalTile::bytesInside(int64_t stored, unsigned dim) {
  const Value all = code.i32(vector * bytes), none = code.i32(0);
  Value size = all, inside;
  if (bounds[dim].high) {
    const Value at = code.i32(layout.positionOf(stored)[dim]);
    const Value left = code.make<arith::MinSIOp>(code.make<arith::SubIOp>(bounds[dim].high, at), code.i32(vector));
    size = code.times(code.make<arith::MaxSIOp>(left, none), bytes);
    if (bounds[dim].low) // a multiple of a vector
      inside = code.make<arith::CmpIOp>(arith::CmpIPredicate::sle, bounds[dim].low, at);
  } else {
    inside = code.both(code.isWithin(attribute, stored, dim), bounds[dim].inside);
  }
  for (unsigned other = 0; other < layout.rank(); ++other)
    if (other != dim)
      inside = code.both(inside, isInsideAlong(stored, other));
  return inside ? code.make<arith::SelectOp>(inside, size, none) : size;
}

} // namespace kiln::lowering::gpu
