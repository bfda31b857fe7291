// One thread's accesses to a tile with a shared-memory layout: vectors, or rows of matrices for its warp.

#include "lowering/gpu/ThreadCode.h"

#include "dialect/simt/layout/SharedAccess.h"

using namespace mlir;

namespace kiln::lowering::gpu {

using simt::SharedAccess;
using simt::SharedOp;
using simt::TileLayout;
using simt::Vec;

SharedAddresses::SharedAddresses(ThreadCode &code, const simt::F2Map &bytes, size_t regBits, Value buffer, Value at)
    : code(code), begin(code.add(code.held(buffer), at ? code.held(at) : Value())) {
  const ArrayRef<Vec> columns = bytes.columns().drop_front(regBits);
  for (const Vec column : columns)
    movedByThreads |= column;
  ofThread = code.imageOfThread({bytes.numOutputs(), columns});
}

SharedAddresses::Place SharedAddresses::of(Vec bytesOfRegisters) {
  const Vec swizzled = bytesOfRegisters & movedByThreads;
  Value &address = addresses[swizzled];
  if (!address) {
    Value offset = ofThread;
    if (swizzled)
      offset = code.make<arith::XOrIOp>(offset, code.i32(static_cast<int64_t>(swizzled)));
    address = code.add(begin, offset);
  }
  return {address, static_cast<int64_t>(bytesOfRegisters ^ swizzled)};
}

/// Converts a map from element offsets to byte offsets.
static simt::F2Map inBytes(const simt::F2Map &map, unsigned bits) {
  simt::Vecs columns(map.columns());
  for (Vec &column : columns)
    column *= bits / 8;
  return {map.numOutputs() + llvm::Log2_32(bits / 8), columns};
}

namespace {

/// One tile with its shared-memory layout.
class SharedLayoutTile {
public:
  SharedLayoutTile(ThreadCode &code, RankedTensorType tile, Value buffer, Value at, simt::SharedLayoutAttr sharedLayout,
                   simt::Movement by)
      : layout(simt::layoutOf(tile).getLayout()),
        element(tile.getElementType().isInteger(1) ? code.builder.getI8Type() : tile.getElementType()),
        access(accessOf(layout, sharedLayout, static_cast<SharedOp>(by))), coreBytes(sharedLayout.getCoreBytes()),
        places(code, inBytes(access.address, access.bits), access.regBits(), buffer, at) {}

  /// The address of an instruction for a repeat of the core.
  SharedAddresses::Place placeOf(unsigned instruction, int64_t repeat) {
    const auto [address, displacement] = places.of(access.offsetOf(instruction, {}) * (access.bits / 8));
    return {address, displacement + repeat * coreBytes};
  }
  /// The register indices of the elements that an instruction moves: of each matrix, or of the vector.
  Indices storedBy(unsigned instruction, int64_t repeat) const {
    Indices indices;
    for (unsigned matrix = 0; matrix < 1u << access.matrix.size(); ++matrix)
      for (unsigned number = 0; number < 1u << access.element.size(); ++number)
        indices.push_back((repeat << layout.regBits()) + access.registerOf(0, instruction, matrix, number));
    return indices;
  }
  unsigned instructions() const { return 1u << access.each.size(); }
  bool isMatrix() const { return access.op != SharedOp::vector; }
  bool isTransposed() const { return access.op == SharedOp::columns; }
  /// The data of an instruction as elements, and as words of matrices.
  VectorType vectorType() const {
    return VectorType::get({int64_t{1} << (access.element.size() + access.matrix.size())}, element);
  }
  VectorType words() const {
    return VectorType::get({int64_t{1} << access.matrix.size()}, IntegerType::get(element.getContext(), 32));
  }

  const TileLayout layout;
  const Type element;

private:
  static SharedAccess accessOf(const TileLayout &layout, simt::SharedLayoutAttr sharedLayout, SharedOp op) {
    return op == SharedOp::vector ? simt::vectorAccess(layout, sharedLayout.getMap(), sharedLayout.getBits())
                                  : *simt::matrixAccess(layout, sharedLayout.getMap(), sharedLayout.getBits(), op);
  }

  const SharedAccess access;
  const int64_t coreBytes;
  SharedAddresses places;
};

} // namespace

/// The stored form of the tile: zeros as padding, bools as bytes.
static Value writable(ThreadCode &code, Value tile, Type element) {
  Value vector = code.held(tile);
  if (const auto type = cast<VectorType>(vector.getType()); type.getElementType() != element)
    vector = code.make<arith::ExtUIOp>(typeLike(type, element), vector);
  const simt::LayoutAttr layout = simt::layoutOf(tile);
  for (unsigned dim = 0; dim < layout.getLayout().rank(); ++dim)
    vector = code.paddedWith(code.builder.getZeroAttr(element), vector, layout, dim);
  return vector;
}

void distributeSharedLayoutWrite(ThreadCode &code, simt::WriteOp op) {
  SharedLayoutTile tile(code, cast<RankedTensorType>(op.getValue().getType()), op.getBuffer(), {},
                        *op.getSharedLayout(), *op.getMovement());
  const Value vector = writable(code, op.getValue(), tile.element), owner = code.isOwner(tile.layout);
  for (int64_t repeat = 0; repeat < tile.layout.shape().repeats(); ++repeat)
    for (unsigned instruction = 0; instruction < tile.instructions(); ++instruction) {
      const auto [address, displacement] = tile.placeOf(instruction, repeat);
      Value part = code.pick(vector, tile.storedBy(instruction, repeat));
      if (tile.isMatrix()) {
        part = code.make<vector::BitCastOp>(tile.words(), part);
        simt::StoreMatrixOp::create(code.builder, code.loc, part, address, displacement, tile.isTransposed(), owner);
      } else {
        simt::StoreOp::create(code.builder, code.loc, simt::Space::Shared, part, address, displacement, owner);
      }
    }
}

void distributeSharedLayoutRead(ThreadCode &code, simt::ReadOp op) {
  const auto type = cast<RankedTensorType>(op.getType());
  SharedLayoutTile tile(code, type, op.getBuffer(), op.getOffset(), *op.getSharedLayout(), *op.getMovement());
  Values elements(tile.layout.numStored());
  for (int64_t repeat = 0; repeat < tile.layout.shape().repeats(); ++repeat)
    for (unsigned instruction = 0; instruction < tile.instructions(); ++instruction) {
      const auto [address, displacement] = tile.placeOf(instruction, repeat);
      Value part;
      if (tile.isMatrix()) {
        part = code.make<simt::LoadMatrixOp>(tile.words(), address, displacement, tile.isTransposed());
        part = code.make<vector::BitCastOp>(tile.vectorType(), part);
      } else {
        part = code.make<simt::LoadOp>(tile.vectorType(), simt::Space::Shared, address, displacement, Value(), Value());
      }
      const auto parts = vector::ToElementsOp::create(code.builder, code.loc, part);
      for (const auto [stored, value] : llvm::zip_equal(tile.storedBy(instruction, repeat), parts->getResults()))
        elements[stored] = value;
    }
  Value vector = code.make<vector::FromElementsOp>(
      VectorType::get({static_cast<int64_t>(elements.size())}, tile.element), elements);
  if (type.getElementType() != tile.element)
    vector = code.make<arith::TruncIOp>(typeLike(vector.getType(), type.getElementType()), vector);
  code.set(op.getResult(), vector);
}

} // namespace kiln::lowering::gpu
