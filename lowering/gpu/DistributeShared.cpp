// One thread's writes to shared memory and reads from it.

#include "dialect/simt/layout/SharedAccess.h"
#include "lowering/analysis/Integers.h"
#include "lowering/gpu/SharedPlace.h"
#include "lowering/gpu/ThreadCode.h"

using namespace mlir;

namespace kiln::lowering::gpu {

// --- In a layout of shared memory ------------------------------------------------------------------------------------

// One thread's accesses to a tile with a shared-memory layout: vectors, or rows of matrices for its warp.

using simt::SharedAccess;
using simt::SharedOp;
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

static void writeInLayout(ThreadCode &code, simt::WriteOp op) {
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

static void readInLayout(ThreadCode &code, simt::ReadOp op) {
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

// --- With strides ----------------------------------------------------------------------------------------------------

// One thread's accesses to shared memory. Positions, strides and addresses are constants except for the thread's part.
// A vector is as wide as adjacent registers, their addresses and the alignment allow.

namespace {

/// One tile in one buffer.
class SharedTile {
public:
  SharedTile(ThreadCode &code, RankedTensorType tile, Value buffer, ArrayRef<int64_t> strides, Value offset)
      : layout(simt::layoutOf(tile).getLayout()),
        element(tile.getElementType().isInteger(1) ? code.builder.getI8Type() : tile.getElementType()),
        vectors(sharedVectors(layout, element.getIntOrFloatBitWidth() / 8, strides, offset ? divisorOf(offset) : 16)),
        type(VectorType::get({vectors.empty() ? 1 : static_cast<int64_t>(vectors[0].size())}, element)), code(code),
        attribute(simt::layoutOf(tile)), strides(strides) {
    address = code.add(code.held(buffer), offset ? code.held(offset) : Value());
    for (unsigned dim = 0; dim < layout.rank(); ++dim)
      address = code.add(address, code.times(code.threadOffset(attribute, dim), strides[dim]));
  }

  int64_t displacement(const SharedVector &vector) const { return offsetOf(layout.positionOf(vector[0]), strides); }
  /// Whether a vector is inside the tile; null if all are.
  Value isWithin(const SharedVector &vector) {
    Value within;
    for (unsigned dim = 0; dim < layout.rank(); ++dim)
      within = code.both(within, code.isWithin(attribute, vector[0], dim));
    return within;
  }

  const TileLayout layout;
  const Type element;
  const std::vector<SharedVector> vectors;
  const VectorType type; // type of a vector
  Value address;

private:
  ThreadCode &code;
  const LayoutAttr attribute;
  const ArrayRef<int64_t> strides;
};

} // namespace

void distribute(ThreadCode &code, simt::WriteOp op) {
  if (op.getSharedLayout())
    return writeInLayout(code, op);
  SharedTile tile(code, cast<RankedTensorType>(op.getValue().getType()), op.getBuffer(), *op.getStrides(), {});
  Value vector = code.held(op.getValue());
  if (const auto type = cast<VectorType>(vector.getType()); type.getElementType().isInteger(1))
    vector = code.make<arith::ExtUIOp>(typeLike(type, tile.element), vector);
  const auto parts = vector::ToElementsOp::create(code.builder, code.loc, vector);
  const Values elements(parts->getResults());
  const Value owner = code.isOwner(tile.layout);
  for (const SharedVector &vector : tile.vectors) {
    const auto picked = llvm::map_to_vector(vector, [&](int64_t stored) { return elements[stored]; });
    const Value part = code.make<vector::FromElementsOp>(tile.type, picked);
    simt::StoreOp::create(code.builder, code.loc, simt::Space::Shared, part, tile.address, tile.displacement(vector),
                          code.both(owner, tile.isWithin(vector)));
  }
}

/// Converts loaded elements of a tile; a bool is a byte in memory.
static void setRead(ThreadCode &code, Value tile, const Values &elements) {
  const auto type = VectorType::get({static_cast<int64_t>(elements.size())}, elements[0].getType());
  Value vector = code.make<vector::FromElementsOp>(type, elements);
  if (cast<RankedTensorType>(tile.getType()).getElementType().isInteger(1))
    vector = code.make<arith::TruncIOp>(typeLike(type, code.builder.getI1Type()), vector);
  code.set(tile, vector);
}

void distribute(ThreadCode &code, simt::ReadOp op) {
  if (op.getSharedLayout())
    return readInLayout(code, op);
  SharedTile tile(code, cast<RankedTensorType>(op.getType()), op.getBuffer(), *op.getStrides(), op.getOffset());
  const TypedAttr zero = code.builder.getZeroAttr(tile.element);
  const Value other = code.make<arith::ConstantOp>(DenseElementsAttr::get(tile.type, Attribute(zero)));
  Values elements(tile.layout.numStored(), code.make<arith::ConstantOp>(zero));
  for (const SharedVector &vector : tile.vectors) {
    const Value within = tile.isWithin(vector);
    const Value loaded = code.make<simt::LoadOp>(tile.type, simt::Space::Shared, tile.address,
                                                 tile.displacement(vector), within, within ? other : Value());
    auto parts = vector::ToElementsOp::create(code.builder, code.loc, loaded);
    for (const auto [stored, part] : llvm::zip_equal(vector, parts.getResults()))
      elements[stored] = part;
  }
  setRead(code, op.getResult(), elements);
}

/// An affine expression of a thread's nonnegative positions, as i32.
static Value valueOf(ThreadCode &code, AffineExpr expr, ArrayRef<Value> positions) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return positions[dim.getPosition()];
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return code.i32(constant.getValue());
  auto binary = cast<AffineBinaryOpExpr>(expr);
  const Value left = valueOf(code, binary.getLHS(), positions), right = valueOf(code, binary.getRHS(), positions);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return code.make<arith::AddIOp>(left, right);
  case AffineExprKind::Mul:
    return code.make<arith::MulIOp>(left, right);
  case AffineExprKind::Mod:
    return code.make<arith::RemUIOp>(left, right);
  case AffineExprKind::FloorDiv:
    return code.make<arith::DivUIOp>(left, right);
  default:
    llvm_unreachable("no operation moves elements so");
  }
}

void distribute(ThreadCode &code, simt::PickOp op) {
  const LayoutAttr attribute = simt::layoutOf(op.getResult());
  const TileLayout layout = attribute.getLayout();
  Type element = cast<RankedTensorType>(op.getType()).getElementType();
  element = element.isInteger(1) ? code.builder.getI8Type() : element;
  const auto vectorType = VectorType::get({1}, element);
  const Value other = code.make<arith::ConstantOp>(code.builder.getZeroAttr(vectorType));
  Values elements(layout.numStored(), code.make<arith::ConstantOp>(cast<TypedAttr>(code.builder.getZeroAttr(element))));
  for (int64_t stored = 0; stored < layout.numStored(); ++stored) {
    if (layout.isDead(stored))
      continue;
    Values positions;
    Value within;
    for (const auto [dim, position] : llvm::enumerate(layout.positionOf(stored))) {
      positions.push_back(code.add(code.threadOffset(attribute, static_cast<unsigned>(dim)), code.i32(position)));
      within = code.both(within, code.isWithin(attribute, stored, static_cast<unsigned>(dim)));
    }
    const Value address = code.add(code.held(op.getBuffer()), valueOf(code, op.getPlace().getResult(0), positions));
    const Value loaded =
        code.make<simt::LoadOp>(vectorType, simt::Space::Shared, address, int64_t{0}, within, within ? other : Value());
    elements[stored] = code.make<vector::ExtractOp>(loaded, 0);
  }
  setRead(code, op.getResult(), elements);
}

} // namespace kiln::lowering::gpu
