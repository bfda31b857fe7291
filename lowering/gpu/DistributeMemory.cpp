// Accesses of global memory by one thread: loads, stores, copies to shared memory, and atomics with their orders.
//
// GlobalTile knows where a thread's packets lie and whether they are inside; what is done with each is spelled here.

#include "lowering/gpu/GlobalTile.h"
#include "lowering/gpu/ImagePlaces.h"

#include "dialect/tile/AccessRules.h"
#include "dialect/tile/TypeRules.h"

#include "lowering/analysis/TileUses.h"
#include "lowering/tile/Atomics.h"

using namespace mlir;

namespace kiln::lowering::gpu {

using simt::TileLayout;

static int64_t vectorOf(Operation *op) {
  auto vector = op->getAttrOfType<IntegerAttr>("simt.vector");
  return vector ? vector.getInt() : 1;
}

/// Nothing that the kernel may write overlaps the view.
static bool isReadOnly(ThreadCode &code, tile::AccessOp load) {
  const auto [known, isNew] = code.readOnly.try_emplace(load.getView(), true);
  if (!isNew)
    return known->second;
  const WalkResult walk = load->getParentOfType<func::FuncOp>().walk([&](tile::AccessOp access) {
    const bool writes = access.writesView() && mayOverlap(access.getView(), load.getView());
    return writes ? WalkResult::interrupt() : WalkResult::advance();
  });
  return known->second = !walk.wasInterrupted();
}

/// A bool is any byte but 0.
static Value asTile(ThreadCode &code, ArrayRef<Value> elements, Type element) {
  const auto type = VectorType::get({static_cast<int64_t>(elements.size())}, elements[0].getType());
  const Value vector = code.make<vector::FromElementsOp>(type, elements);
  if (!element.isInteger(1))
    return vector;
  return code.make<arith::CmpIOp>(arith::CmpIPredicate::ne, vector,
                                  code.make<arith::ConstantOp>(code.builder.getZeroAttr(type)));
}

static void distributeLoad(ThreadCode &code, tile::AccessOp op) {
  GlobalTile tile(code, op);
  tile.vector = vectorOf(op);
  const TypedAttr pad = tile::paddingOf(op.getPadding(), tile.element);
  const auto packet = VectorType::get({tile.vector}, tile.element);
  const Value other = code.make<arith::ConstantOp>(DenseElementsAttr::get(packet, Attribute(pad)));
  const Value padded = code.make<arith::ConstantOp>(pad);
  const bool readonly = isReadOnly(code, op);
  Values elements(tile.layout.numStored(), padded);
  for (const int64_t stored : tile.packets()) {
    const Value inside = tile.isInside(stored);
    auto loaded = simt::LoadOp::create(code.builder, code.loc, packet, simt::Space::Global, tile.address(stored),
                                       tile.displacement(stored), inside, inside ? other : Value(), readonly);
    tile::copyCache(op, loaded);
    auto parts = vector::ToElementsOp::create(code.builder, code.loc, loaded.getResult());
    llvm::copy(parts.getResults(), elements.begin() + stored);
  }
  code.set(op.getTile(), asTile(code, elements, op.getTile().getType().getElementType()));
}

/// What a thread holds of a tile, as memory has it.
static Values storedElements(ThreadCode &code, Value value) {
  Value vector = code.held(value);
  const auto type = cast<VectorType>(vector.getType());
  if (type.getElementType().isInteger(1))
    vector = code.make<arith::ExtUIOp>(typeLike(type, code.builder.getI8Type()), vector);
  return Values(vector::ToElementsOp::create(code.builder, code.loc, vector).getResults());
}

static void distributeStore(ThreadCode &code, tile::AccessOp op) {
  GlobalTile tile(code, op);
  tile.vector = vectorOf(op);
  const Values elements = storedElements(code, op.getTile());
  const auto packet = VectorType::get({tile.vector}, tile.element);
  const Value owner = code.isOwner(tile.layout);
  for (const int64_t stored : tile.packets()) {
    const Value part = code.make<vector::FromElementsOp>(packet, ArrayRef(elements).slice(stored, tile.vector));
    const Value predicate = code.both(tile.isInside(stored), owner);
    auto store = simt::StoreOp::create(code.builder, code.loc, simt::Space::Global, part, tile.address(stored),
                                       tile.displacement(stored), predicate);
    store.setStrong(op.getIndexRank() > 0); // several threads may name one element: one of them writes it, whole
    tile::copyCache(op, store);
  }
}

/// A thread of several with the same elements copies them; what lies past the tile's end is zeros, too, and all of a
/// tile that is not there.
void distributeFetch(ThreadCode &code, simt::FetchOp op) {
  const simt::ImageAttr image = op.getImage();
  GlobalTile tile(code, op, op.getView(), op.getOffsets(),
                  RankedTensorType::get(image.getShape(), image.getElement(), op.getLayout()));
  tile.vector = static_cast<int64_t>(op.getVector());
  const TileLayout &layout = tile.layout;
  const unsigned bytes = image.getBits() / 8;
  simt::Vecs columns(layout.core().then(image.getMap()).columns());
  for (simt::Vec &column : columns)
    column *= bytes;
  const simt::F2Map places({image.getMap().numOutputs() + llvm::Log2_32(bytes), columns});
  ImagePlaces images(code, places, layout.regBits(), op.getBuffer(), op.getAt());
  const unsigned fastest = tile.vector > 1 ? layout.shape().unitOf(layout.bases(simt::Hw::reg).front()).dim : 0;
  const Value isThere = op.getPredicate() ? code.held(op.getPredicate()) : Value(), owner = code.isOwner(layout);
  for (int64_t stored = 0; stored < layout.numStored(); stored += tile.vector) {
    const int64_t repeat = stored >> layout.regBits();
    const auto [target, displacement] =
        images.of(places(static_cast<simt::Vec>(stored) & ((1u << layout.regBits()) - 1)));
    const Value inside = op.getWhole() ? tile.isInside(stored, isThere) : isThere;
    const Value size = op.getWhole() ? Value() : tile.bytesInside(stored, fastest);
    auto copy = simt::CopyAsyncOp::create(code.builder, code.loc, tile.vector * bytes, target,
                                          displacement + repeat * image.getCoreBytes(), tile.address(stored),
                                          tile.displacement(stored), size, inside, owner);
    tile::copyCache(op, copy);
  }
}

/// What one thread does with the element at a stored index, of which it holds `values`. `fenced`: fences order it.
static Value atomicOf(ThreadCode &code, tile::AccessOp op, GlobalTile &tile, ArrayRef<Value> values, int64_t stored,
                      Value predicate, bool fenced) {
  const Value address = tile.address(stored);
  const int64_t displacement = tile.displacement(stored);
  const auto order = [&](Operation *made) {
    if (op.ordersAll() && !fenced)
      made->setAttr("simt.order", code.builder.getStringAttr(tile::stringifyMemoryOrder(op.getOrder())));
  };
  if (auto change = dyn_cast<tile::AtomicRmwOp>(*op)) {
    const Value before = code.make<simt::AtomicRmwOp>(tile.element, change.getKindAttr(), values[0], address,
                                                      code.builder.getI64IntegerAttr(displacement), predicate);
    tile::setUnsigned(before.getDefiningOp(), tile::isUnsigned(change));
    order(before.getDefiningOp());
    if (fenced && op.getOrder() != tile::MemoryOrder::Release)
      before.getDefiningOp()->setAttr("simt.fenced", code.builder.getUnitAttr());
    return before;
  }
  if (isa<tile::AtomicCasOp>(*op)) {
    const Value before =
        code.make<simt::AtomicCasOp>(tile.element, values[0], values[1], address, displacement, predicate);
    order(before.getDefiningOp());
    return before;
  }
  const auto packet = VectorType::get({1}, tile.element);
  if (op.writesView()) {
    const Value part = code.make<vector::FromElementsOp>(packet, values);
    order(simt::StoreOp::create(code.builder, code.loc, simt::Space::Global, part, address, displacement, predicate,
                                /*strong=*/true));
    return {};
  }
  const Value zeros = code.make<arith::ConstantOp>(code.builder.getZeroAttr(packet));
  const Value loaded = code.make<simt::LoadOp>(packet, simt::Space::Global, address, displacement, predicate,
                                               predicate ? zeros : Value(), /*readonly=*/false, /*strong=*/true);
  order(loaded.getDefiningOp());
  return code.make<vector::ExtractOp>(loaded, 0);
}

/// Of threads that hold the same element one does it, with the order in its instruction: gpu-insert-barriers has made
/// it wait for all that the program's threads did before, which it releases as its own, and makes them wait for what it
/// acquires. Where a thread has several elements, one fence before or after them orders as much as each of them would.
static void distributeAtomic(ThreadCode &code, tile::AccessOp op) {
  using tile::MemoryOrder;
  GlobalTile tile(code, op);
  const MemoryOrder order = op.getOrder();
  SmallVector<Values, 2> values;
  for (const Value value : valuesOfAtomic(op))
    values.push_back(storedElements(code, value));
  const Value zero = code.make<arith::ConstantOp>(cast<TypedAttr>(code.builder.getZeroAttr(tile.element)));
  const Value owner = code.isOwner(tile.layout);
  const Indices packets = tile.packets();
  const bool fenced = op.ordersAll() && packets.size() > 1;
  if (fenced && order != MemoryOrder::Acquire)
    simt::FenceOp::create(code.builder, code.loc);
  Values before(tile.layout.numStored(), zero);
  for (const int64_t stored : packets) {
    Values own;
    for (const Values &each : values)
      own.push_back(each[stored]);
    before[stored] = atomicOf(code, op, tile, own, stored, code.both(tile.isInside(stored), owner), fenced);
  }
  if (fenced && order != MemoryOrder::Release)
    simt::FenceOp::create(code.builder, code.loc);
  if (op->getNumResults() == 1)
    code.set(op->getResult(0), asTile(code, before, op.getTile().getType().getElementType()));
}

LogicalResult distributeAccess(ThreadCode &code, tile::AccessOp op) {
  if (op.isAtomic())
    return distributeAtomic(code, op), success();
  if (op.isLoad())
    return distributeLoad(code, op), success();
  if (op.isStore())
    return distributeStore(code, op), success();
  return op->emitOpError("expected an access that threads can do");
}

} // namespace kiln::lowering::gpu
