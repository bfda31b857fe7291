// One thread's accesses to global memory: loads, stores, copies to shared memory, and atomics with memory orders.
//
// GlobalTile has the addresses and bounds of a thread's vectors; the accesses are emitted here.

#include "lowering/gpu/GlobalTile.h"
#include "lowering/gpu/Pipeline.h"
#include "lowering/gpu/ThreadCode.h"

#include "dialect/tile/AccessRules.h"
#include "dialect/tile/TypeRules.h"

#include "lowering/analysis/TileUses.h"
#include "lowering/tile/Atomics.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace kiln::lowering::gpu {

/// Whether the kernel writes no view that may overlap the load's view.
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

/// A bool is true for any nonzero byte.
static Value joinElements(ThreadCode &code, ArrayRef<Value> elements, Type element) {
  const auto type = VectorType::get({static_cast<int64_t>(elements.size())}, elements[0].getType());
  const Value vector = code.make<vector::FromElementsOp>(type, elements);
  if (!element.isInteger(1))
    return vector;
  return code.make<arith::CmpIOp>(arith::CmpIPredicate::ne, vector,
                                  code.make<arith::ConstantOp>(code.builder.getZeroAttr(type)));
}

// --- Vectors within which a view ends --------------------------------------------------------------------------------

/// A branch whose results are those of `then` if the condition holds, and otherwise `values`.
static Values branchIf(ThreadCode &code, Value condition, const Values &values, function_ref<Values()> then) {
  auto branch = scf::IfOp::create(code.builder, code.loc, TypeRange(ValueRange(values)), condition, !values.empty());
  const OpBuilder::InsertionGuard guard(code.builder);
  code.builder.setInsertionPointToStart(branch.thenBlock());
  const Values results = then();
  if (values.empty())
    return {};
  scf::YieldOp::create(code.builder, code.loc, results);
  code.builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(code.builder, code.loc, values);
  return Values(branch.getResults());
}

/// Calls `part` for each vector within which the view may end. One branch encloses all of them; tiles that are
/// completely inside skip it. Inside it there is a branch for each position along memory. `vectors` are the present
/// values of the vectors, if any. They are replaced by the results of `part`.
static void forCutVectors(ThreadCode &code, const GlobalTile &tile, const Indices &begins, Values &vectors,
                          function_ref<Value(size_t)> part) {
  if (!tile.isCut())
    return;
  llvm::MapVector<int64_t, SmallVector<size_t>> places;
  for (const auto [number, stored] : llvm::enumerate(begins))
    places[tile.placeOf(stored)].push_back(number);
  vectors = branchIf(code, tile.isCut(), vectors, [&] {
    Values all = vectors;
    for (const auto &[place, numbers] : places) {
      Values old;
      for (const size_t number : vectors.empty() ? ArrayRef<size_t>() : ArrayRef(numbers))
        old.push_back(vectors[number]);
      const Values parts = branchIf(code, tile.isCut(begins[numbers.front()]), old, [&] {
        return llvm::map_to_vector(numbers, [&](size_t number) { return part(number); });
      });
      for (const auto [number, value] : llvm::zip(numbers, parts))
        all[number] = value;
    }
    return all;
  });
}

// --- Loads and stores ------------------------------------------------------------------------------------------------

/// The type in which a load returns a vector: words of at most 32 bits, or elements if these have 32 bits or more.
static VectorType wordsOf(VectorType vectorType) {
  const unsigned element = vectorType.getElementTypeBitWidth();
  const auto total = static_cast<unsigned>(element * vectorType.getNumElements());
  if (element >= 32)
    return vectorType;
  const unsigned word = std::min(total, 32u);
  return VectorType::get({total / word}, IntegerType::get(vectorType.getContext(), word));
}

static Value recast(ThreadCode &code, Value value, VectorType type) {
  return value.getType() == type ? value : code.make<vector::BitCastOp>(type, value);
}

static void distributeLoad(ThreadCode &code, tile::AccessOp op) {
  GlobalTile tile(code, op);
  const TypedAttr pad = tile::paddingOf(op.getPadding(), tile.element);
  const auto vectorType = VectorType::get({tile.vector}, tile.element), single = VectorType::get({1}, tile.element);
  // The results of the branch are words, because a thread that extracts elements first would wait for the load.
  const VectorType words = tile.isCut() ? wordsOf(vectorType) : vectorType;
  const Value other =
      recast(code, code.make<arith::ConstantOp>(DenseElementsAttr::get(vectorType, Attribute(pad))), words);
  const Value padded = code.make<arith::ConstantOp>(pad);
  const bool readonly = !op->hasAttr(aheadName) && isReadOnly(code, op); // ptxas moves ld.global.nc down to its use
  const auto load = [&](VectorType type, int64_t stored, int64_t past, Value inside, Value orElse) {
    auto loaded = simt::LoadOp::create(code.builder, code.loc, type, simt::Space::Global, tile.address(stored),
                                       tile.displacement(stored) + past, inside, inside ? orElse : Value(), readonly);
    tile::copyCache(op, loaded);
    return loaded.getResult();
  };
  const Indices begins = tile.vectors();
  Values vectors, insideOthers;
  for (const int64_t stored : begins) {
    vectors.push_back(load(words, stored, 0, tile.isInside(stored), other));
    insideOthers.push_back(tile.isCut() ? tile.isInsideOtherAxes(stored) : Value());
  }
  forCutVectors(code, tile, begins, vectors, [&](size_t number) {
    Values parts(
        vector::ToElementsOp::create(code.builder, code.loc, recast(code, vectors[number], vectorType)).getResults());
    for (int64_t i = 0; i < tile.maxRest(); ++i) {
      const Value orElse = code.make<vector::FromElementsOp>(single, parts[i]);
      const Value inside = code.both(tile.isInRest(i), insideOthers[number]);
      parts[i] = code.make<vector::ExtractOp>(load(single, begins[number], i * tile.bytes, inside, orElse), 0);
    }
    return recast(code, code.make<vector::FromElementsOp>(vectorType, parts), words);
  });
  Values elements(tile.layout.numStored(), padded);
  for (const auto [stored, loaded] : llvm::zip(begins, vectors)) {
    auto parts = vector::ToElementsOp::create(code.builder, code.loc, recast(code, loaded, vectorType));
    llvm::copy(parts.getResults(), elements.begin() + stored);
  }
  code.set(op.getTile(), joinElements(code, elements, op.getTile().getType().getElementType()));
}

/// A thread's elements of a tile in memory format.
static Values storedElements(ThreadCode &code, Value value) {
  Value vector = code.held(value);
  const auto type = cast<VectorType>(vector.getType());
  if (type.getElementType().isInteger(1))
    vector = code.make<arith::ExtUIOp>(typeLike(type, code.builder.getI8Type()), vector);
  return Values(vector::ToElementsOp::create(code.builder, code.loc, vector).getResults());
}

static void distributeStore(ThreadCode &code, tile::AccessOp op) {
  GlobalTile tile(code, op);
  const Values elements = storedElements(code, op.getTile());
  const Value owner = code.isOwner(tile.layout);
  const auto store = [&](int64_t stored, int64_t from, int64_t count, Value predicate) {
    const auto vectorType = VectorType::get({count}, tile.element);
    const Value part = code.make<vector::FromElementsOp>(vectorType, ArrayRef(elements).slice(stored + from, count));
    auto made = simt::StoreOp::create(code.builder, code.loc, simt::Space::Global, part, tile.address(stored),
                                      tile.displacement(stored) + from * tile.bytes, predicate);
    made.setStrong(op.getIndexRank() > 0); // several threads may write one element; one of the values must result
    tile::copyCache(op, made);
  };
  const Indices begins = tile.vectors();
  Values insideOthers, none;
  for (const int64_t stored : begins) {
    store(stored, 0, tile.vector, code.both(tile.isInside(stored), owner));
    insideOthers.push_back(tile.isCut() ? code.both(tile.isInsideOtherAxes(stored), owner) : Value());
  }
  forCutVectors(code, tile, begins, none, [&](size_t number) {
    for (int64_t i = 0; i < tile.maxRest(); ++i)
      store(begins[number], i, 1, code.both(tile.isInRest(i), insideOthers[number]));
    return Value();
  });
}

/// One of several threads with the same elements copies them. Elements past the tile's end are zero, and so is a whole
/// tile outside of the loop's range.
void distribute(ThreadCode &code, simt::FetchOp op) {
  const simt::SharedLayoutAttr sharedLayout = op.getSharedLayout();
  GlobalTile tile(code, op, op.getView(), op.getOffsets(),
                  RankedTensorType::get(sharedLayout.getShape(), sharedLayout.getElement(), op.getLayout()),
                  static_cast<int64_t>(op.getVector()));
  const TileLayout &layout = tile.layout;
  const unsigned bytes = sharedLayout.getBits() / 8;
  simt::Vecs columns(layout.core().then(sharedLayout.getMap()).columns());
  for (simt::Vec &column : columns)
    column *= bytes;
  const simt::F2Map places({sharedLayout.getMap().numOutputs() + llvm::Log2_32(bytes), columns});
  SharedAddresses addresses(code, places, layout.regBits(), op.getBuffer(), op.getAt());
  const unsigned fastest = tile.vector > 1 ? layout.shape().unitOf(layout.bases(simt::Hw::reg).front()).dim : 0;
  const Value isThere = op.getPredicate() ? code.held(op.getPredicate()) : Value(), owner = code.isOwner(layout);
  for (int64_t stored = 0; stored < layout.numStored(); stored += tile.vector) {
    const int64_t repeat = stored >> layout.regBits();
    const auto [target, displacement] =
        addresses.of(places(static_cast<simt::Vec>(stored) & ((1u << layout.regBits()) - 1)));
    const Value inside = op.getWhole() ? tile.isInside(stored, isThere) : isThere;
    const Value size = op.getWhole() ? Value() : tile.bytesInside(stored, fastest);
    auto copy = simt::CopyAsyncOp::create(code.builder, code.loc, tile.vector * bytes, target,
                                          displacement + repeat * sharedLayout.getCoreBytes(), tile.address(stored),
                                          tile.displacement(stored), size, inside, owner);
    tile::copyCache(op, copy);
  }
}

/// Emits the atomic on the element at a register index; `values` are the operands. `fenced`: ordered by fences.
static Value atomicOf(ThreadCode &code, tile::AccessOp op, GlobalTile &tile, ArrayRef<Value> values, int64_t stored,
                      Value predicate, bool fenced) {
  const Value address = tile.address(stored);
  const int64_t displacement = tile.displacement(stored);
  const auto order = [&](Operation *made) {
    tile::copyScope(op, made);
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
  const auto vectorType = VectorType::get({1}, tile.element);
  if (op.writesView()) {
    const Value part = code.make<vector::FromElementsOp>(vectorType, values);
    order(simt::StoreOp::create(code.builder, code.loc, simt::Space::Global, part, address, displacement, predicate,
                                /*strong=*/true));
    return {};
  }
  const Value zeros = code.make<arith::ConstantOp>(code.builder.getZeroAttr(vectorType));
  const Value loaded = code.make<simt::LoadOp>(vectorType, simt::Space::Global, address, displacement, predicate,
                                               predicate ? zeros : Value(), /*readonly=*/false, /*strong=*/true);
  order(loaded.getDefiningOp());
  return code.make<vector::ExtractOp>(loaded, 0);
}

/// One of the threads that hold the same element executes it, with the memory order in its instruction. Barriers of
/// gpu-insert-barriers order it after all previous accesses of the program's threads, which it releases, and order
/// later accesses after it. If a thread has several elements, one fence before or after them orders all of them.
static void distributeAtomic(ThreadCode &code, tile::AccessOp op) {
  using tile::MemoryOrder;
  GlobalTile tile(code, op);
  const MemoryOrder order = op.getOrder();
  SmallVector<Values, 2> values;
  for (const Value value : valuesOfAtomic(op))
    values.push_back(storedElements(code, value));
  const Value zero = code.make<arith::ConstantOp>(cast<TypedAttr>(code.builder.getZeroAttr(tile.element)));
  const Value owner = code.isOwner(tile.layout);
  const Indices vectors = tile.vectors();
  const bool fenced = op.ordersAll() && vectors.size() > 1;
  if (fenced && order != MemoryOrder::Acquire)
    tile::copyScope(op, simt::FenceOp::create(code.builder, code.loc));
  Values before(tile.layout.numStored(), zero);
  for (const int64_t stored : vectors) {
    Values own;
    for (const Values &each : values)
      own.push_back(each[stored]);
    before[stored] = atomicOf(code, op, tile, own, stored, code.both(tile.isInside(stored), owner), fenced);
  }
  if (fenced && order != MemoryOrder::Release)
    tile::copyScope(op, simt::FenceOp::create(code.builder, code.loc));
  if (op->getNumResults() == 1)
    code.set(op->getResult(0), joinElements(code, before, op.getTile().getType().getElementType()));
}

LogicalResult distribute(ThreadCode &code, tile::AccessOp op) {
  if (op.isAtomic())
    return distributeAtomic(code, op), success();
  if (op.isLoad())
    return distributeLoad(code, op), success();
  if (op.isStore())
    return distributeStore(code, op), success();
  return op->emitOpError("expected an access that threads can do");
}

} // namespace kiln::lowering::gpu
