// cp.async.bulk.tensor, cp.reduce.async.bulk.tensor and their prefetch: boxes of an array that a tensor map describes.
// tensormap.replace, tensormap.cp_fenceproxy and fence.proxy.tensormap: maps that a kernel creates or changes.
//
// Elements outside the array are filled on loads and skipped on stores; an mbarrier counts the whole box.

#include "runtime/simulator/BulkCopies.h"
#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Cta.h"
#include "runtime/simulator/Shadow.h"
#include "runtime/simulator/TensorMap.h"

#include <bit>
#include <fmt/format.h>
#include <utility>

namespace kiln::simulator {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

namespace {
/// The slots of the coordinates follow.
struct TensorOperands {
  Decoder::Address map, shared, mbarrier;
  uint32_t mask = Step::none; // a slot
  bool isLoad = false, reduces = false;
  AtomicOperation reduction = AtomicOperation::add;
};
} // namespace

/// A lane's map; none if it is not a map, which is reported.
static std::optional<TensorMap> mapOf(Warp &warp, const Step &step, int lane, const Decoder::Address &operand,
                                      size_t rank) {
  const char *at = locate(warp, step, lane, operand, sizeof(TensorMap), 64, AccessKind::read);
  if (!at)
    return std::nullopt;
  TensorMap map;
  std::memcpy(&map, at, sizeof(map));
  const auto place = reinterpret_cast<uint64_t>(at);
  if (const int64_t version = warp.cta.grid.tensorMaps.version(place)) {
    const auto acquired = warp.cta.acquiredMaps.find(place);
    if (acquired == warp.cta.acquiredMaps.end() || acquired->second != version)
      warp.report(Check::tensorMap, step, lane,
                  fmt::format("uses the tensor map at {:#x}, which has been changed and not been acquired since by "
                              "fence.proxy.tensormap",
                              addressOf(warp, operand, lane)));
  }
  std::string fault = findFault(map);
  if (fault.empty() && static_cast<size_t>(map.rank()) != rank)
    fault = fmt::format("expected a tensor map of rank {}, but got {}", rank, map.rank());
  if (fault.empty())
    return map;
  warp.report(Check::tensorMap, step, lane, fault);
  return std::nullopt;
}

/// The fill value of elements outside the array: zero, or the type's NaN.
static void setFill(const TensorMap &map, BulkOperation &operation) {
  operation.fillBytes = static_cast<uint32_t>(map.elementBytes());
  if (!map.nanFill)
    return;
  const uint64_t bits = operation.fillBytes == 2 ? 0x7fff : operation.fillBytes == 4 ? 0x7fffffff : 0x7fffffffffffffff;
  std::memcpy(operation.fill.data(), &bits, operation.fill.size());
}

/// Adds the box's bytes to an operation. The array's addresses are checked like all others.
static void addBox(Warp &warp, const Step &step, int lane, const TensorMap &map,
                   const std::array<int32_t, maxTensorRank> &coordinates, char *shared, bool isLoad,
                   BulkOperation &operation) {
  char *const base = warp.cta.shared();
  bool reported = false;
  const auto isThere = [&](const BoxRun &run) {
    if (!warp.recent.holds(run.global, run.bytes))
      warp.recent = warp.cta.grid.memory.find(run.global);
    if (warp.recent.holds(run.global, run.bytes))
      return true;
    if (!std::exchange(reported, true))
      warp.report(Check::bounds, step, lane,
                  fmt::format("the tensor map describes {} bytes at {}, where no memory is", run.bytes,
                              warp.cta.grid.outsideText(run.global)));
    return false;
  };
  forEachRun(map, coordinates, static_cast<uint32_t>(shared - base), [&](const BoxRun &run) {
    const bool inside = run.global && isThere(run);
    char *const global = inside ? reinterpret_cast<char *>(run.global) : nullptr;
    if (isLoad)
      operation.pieces.push_back({base + run.shared, global, run.bytes});
    else if (inside)
      operation.pieces.push_back({global, base + run.shared, run.bytes});
  });
}

static void runTensorCopy(Warp &warp, const Step &step) {
  const auto operands = fieldsOf<TensorOperands>(warp, step);
  const std::span<const uint32_t> slots = slotsAfter<TensorOperands>(warp, step);
  forEachLane(warp, [&](int lane) {
    const std::optional<TensorMap> map = mapOf(warp, step, lane, operands.map, slots.size());
    if (!map)
      return;
    expectOnlyBlock(warp, step, lane, operands.mask);
    BulkOperation operation = operationOf(warp, step, lane);
    char *shared = locate(warp, step, lane, operands.shared, map->boxBytes(), 128,
                          operands.isLoad ? AccessKind::write : AccessKind::read, true);
    operation.completion = BulkOperation::Completion::group;
    if (operands.isLoad && !completeAt(warp, step, lane, operands.mbarrier, map->boxBytes(), operation))
      return;
    std::array<int32_t, maxTensorRank> coordinates{};
    for (size_t i = 0; i < slots.size(); ++i)
      coordinates[i] = warp.reg<int32_t>(slots[i])[lane];
    setFill(*map, operation);
    if (operands.reduces) {
      operation.combine = combineFor(operands.reduction, typeOf(map->elementType()));
      operation.overwrites = false;
      if (!operation.combine)
        return warp.report(Check::tensorMap, step, lane,
                           fmt::format("the reduction is not supported for elements of type {}",
                                       ptx::nameOf(typeOf(map->elementType()))));
    }
    if (shared)
      addBox(warp, step, lane, *map, coordinates, shared, operands.isLoad, operation);
    warp.cta.bulk.issue(warp, step, std::move(operation));
  });
}

// --- Decoding ------------------------------------------------------------------------------------------------------

/// Takes `1d` to `5d`.
static uint32_t takeRank(Decoder &d) {
  const int rank = d.takeOne({"1d", "2d", "3d", "4d", "5d"}) + 1;
  if (rank == 0)
    d.wrong("a number of dimensions");
  return static_cast<uint32_t>(rank);
}

/// The operand `[map, {coordinates}]`: sets the map's address, and returns the slots of the coordinates.
static std::vector<uint32_t> decodeMapOperand(Decoder &d, const Operand &operand, uint32_t rank,
                                              Decoder::Address &map) {
  map = d.address(operand, Space::generic);
  const auto coordinates = d.builder.function.elementsOf(operand);
  if (coordinates.size() != rank)
    d.wrong(fmt::format("{} coordinates, but got {},", rank, coordinates.size()));
  std::vector<uint32_t> slots;
  for (const Operand &coordinate : coordinates)
    slots.push_back(d.source(coordinate, Type::s32));
  return slots;
}

void decodeTensorCopy(Decoder &d, bool reduces) {
  const uint32_t rank = takeRank(d);
  const auto [to, from] = takeSpaces(d);
  const bool isLoad = to == Space::shared;
  if (isLoad == (from == Space::shared) || (isLoad && reduces))
    d.unsupported();
  TensorOperands operands{.isLoad = isLoad, .reduces = reduces};
  if (reduces)
    operands.reduction = takeReduction(d);
  d.take("tile");
  decodeCompletion(d, isLoad);
  const bool isMulticast = isLoad && d.take("multicast::cluster"), hasPolicy = d.take("L2::cache_hint");
  if (isLoad)
    d.take("cta_group::1");
  const size_t least = isLoad ? 3 : 2;
  d.expectCount(least + isMulticast + hasPolicy, least + isMulticast + hasPolicy);
  const std::vector<uint32_t> coordinates = decodeMapOperand(d, d.operand(isLoad ? 1 : 0), rank, operands.map);
  operands.shared = d.address(d.operand(isLoad ? 0 : 1), Space::shared);
  if (isLoad)
    operands.mbarrier = d.address(d.operand(2), Space::shared);
  if (isMulticast)
    operands.mask = d.source(3, Type::b16);
  if (hasPolicy)
    d.source(least + isMulticast, Type::b64);
  giveFields(d, d.emit(runTensorCopy), operands, coordinates);
}

/// A prefetch has no effect, but its map is checked.
void decodeTensorPrefetch(Decoder &d) {
  const uint32_t rank = takeRank(d);
  if (!d.take("L2") || !d.take("global"))
    d.unsupported();
  d.take("tile");
  const bool hasPolicy = d.take("L2::cache_hint");
  d.expectCount(1 + hasPolicy, 1 + hasPolicy);
  Decoder::Address map;
  const std::vector<uint32_t> coordinates = decodeMapOperand(d, d.operand(0), rank, map);
  if (hasPolicy)
    d.source(1, Type::b64);
  Step &step = d.emit([](Warp &warp, const Step &step) {
    const auto map = fieldsOf<Decoder::Address>(warp, step);
    const size_t rank = slotsAfter<Decoder::Address>(warp, step).size();
    forEachLane(warp, [&](int lane) { mapOf(warp, step, lane, map, rank); });
  });
  giveFields(d, step, map, coordinates);
}

// --- Maps that a kernel changes -------------------------------------------------------------------------------------
//
// A block may use a changed map in global memory only if one of its threads has acquired it through the proxy fence
// since the change.

namespace {
enum class Field : uint8_t {
  address,
  rank,
  boxDim,
  globalDim,
  globalStride,
  elementStride,
  element,
  interleave,
  swizzle,
  fill
};
} // namespace

static void setField(TensorMap &map, Field field, uint32_t ordinal, uint64_t value) {
  const size_t i = std::min<size_t>(ordinal, maxTensorRank - 1);
  const auto narrow = static_cast<uint8_t>(std::min<uint64_t>(value, 255));
  map.mark = TensorMap::markOfMap;
  switch (field) {
  case Field::address:
    map.address = value;
    return;
  case Field::rank:
    map.rankLessOne = narrow;
    return;
  case Field::boxDim:
    map.box[i] = static_cast<uint32_t>(value);
    return;
  case Field::globalDim:
    map.dims[i] = static_cast<uint32_t>(value);
    return;
  case Field::globalStride:
    map.strides[std::min<size_t>(i, maxTensorRank - 2)] = value;
    return;
  case Field::elementStride:
    map.elementStrides[i] = narrow;
    return;
  case Field::element:
    map.element = narrow;
    return;
  case Field::interleave:
    map.interleave = narrow;
    return;
  case Field::swizzle:
    map.swizzle = narrow;
    return;
  case Field::fill:
    map.nanFill = narrow;
    return;
  }
}

namespace {
struct ReplaceOperands {
  Decoder::Address map;
  uint32_t value; // a slot
  Field field;
  bool isWide; // a value of 8 bytes
  uint8_t ordinal;
};
} // namespace

static void runReplace(Warp &warp, const Step &step) {
  const auto operands = fieldsOf<ReplaceOperands>(warp, step);
  forEachLane(warp, [&](int lane) {
    char *at = locate(warp, step, lane, operands.map, sizeof(TensorMap), 64, AccessKind::write);
    if (!at)
      return;
    TensorMap map;
    std::memcpy(&map, at, sizeof(map));
    setField(map, operands.field, operands.ordinal,
             operands.isWide ? warp.reg<uint64_t>(operands.value)[lane] : warp.reg<uint32_t>(operands.value)[lane]);
    std::memcpy(at, &map, sizeof(map));
    if (!sharedPlace(warp, at))
      warp.cta.grid.tensorMaps.changed(reinterpret_cast<uint64_t>(at));
  });
}

static void decodeReplace(Decoder &d) {
  if (!d.take("tile"))
    d.unsupported();
  const int number = d.takeOne({"global_address", "rank", "box_dim", "global_dim", "global_stride", "element_stride",
                                "elemtype", "interleave_layout", "swizzle_mode", "fill_mode"});
  if (number < 0)
    d.unsupported();
  const auto field = static_cast<Field>(number);
  const bool hasOrdinal = field >= Field::boxDim && field <= Field::elementStride;
  const bool wide = field == Field::address || field == Field::globalStride;
  const Space space = d.space();
  if (!d.take("b1024"))
    d.wrong("'.b1024'");
  if (d.type() != (wide ? Type::b64 : Type::b32))
    d.wrong(wide ? "'.b64'" : "'.b32'");
  d.expectCount(hasOrdinal ? 3 : 2, hasOrdinal ? 3 : 2);
  uint64_t ordinal = 0;
  if (hasOrdinal) {
    const uint64_t most = field == Field::globalStride ? maxTensorRank - 2 : maxTensorRank - 1;
    if (d.operand(1).kind != Operand::Kind::integer || d.operand(1).bits > most)
      d.wrong(fmt::format("a dimension from 0 to {}", most));
    ordinal = d.operand(1).bits;
  }
  const Decoder::Address map = d.address(d.operand(0), space);
  const uint32_t value = d.source(hasOrdinal ? 2 : 1, wide ? Type::b64 : Type::b32);
  giveFields(d, d.emit(runReplace), ReplaceOperands{map, value, field, wide, static_cast<uint8_t>(ordinal)});
}

// --- Copy and fence ------------------------------------------------------------------------------------------------

/// The fields are the addresses of the destination and the source.
static void runCopyAndFence(Warp &warp, const Step &step) {
  const auto [destination, source] = fieldsOf<std::array<Decoder::Address, 2>>(warp, step);
  const int lane = std::countr_zero(warp.exec); // all lanes have the same addresses
  char *to = locate(warp, step, lane, destination, sizeof(TensorMap), 64, AccessKind::warpWrite);
  const char *from = locate(warp, step, lane, source, sizeof(TensorMap), 64, AccessKind::warpRead);
  if (warp.cta.shadow)
    warp.cta.shadow->order.joinLanes(warp.index, warp.exec);
  if (!to || !from)
    return;
  std::memcpy(to, from, sizeof(TensorMap));
  warp.cta.grid.tensorMaps.changed(reinterpret_cast<uint64_t>(to));
}

static void expectMapBytes(Decoder &d, size_t operand) {
  if (d.operand(operand).kind != Operand::Kind::integer || d.operand(operand).bits != sizeof(TensorMap))
    d.wrong("128 bytes");
}

static void decodeCopyAndFence(Decoder &d) {
  const auto [to, from] = takeSpaces(d);
  if (to != Space::global || from != Space::shared || !d.take("tensormap::generic") || !d.take("release") ||
      d.takeOne({"cta", "cluster", "gpu", "sys"}) < 0 || !d.take("sync") || !d.take("aligned"))
    d.unsupported();
  d.expectCount(3, 3);
  expectMapBytes(d, 2);
  giveFields(d, d.emit(runCopyAndFence), std::array{d.address(d.operand(0), to), d.address(d.operand(1), from)});
}

void decodeTensorMapFence(Decoder &d) {
  const bool acquires = d.take("acquire");
  if ((!acquires && !d.take("release")) || d.takeOne({"cta", "cluster", "gpu", "sys"}) < 0)
    d.unsupported();
  d.expectCount(acquires ? 2 : 0, acquires ? 2 : 0);
  if (!acquires)
    return;
  expectMapBytes(d, 1);
  const Decoder::Address map = d.address(d.operand(0), Space::generic);
  Step &step = d.emit([](Warp &warp, const Step &step) {
    const auto map = fieldsOf<Decoder::Address>(warp, step);
    forEachLane(warp, [&](int lane) {
      if (const char *at = locate(warp, step, lane, map, sizeof(TensorMap), 64, AccessKind::read, true)) {
        const auto address = reinterpret_cast<uint64_t>(at);
        warp.cta.acquiredMaps[address] = warp.cta.grid.tensorMaps.version(address);
      }
    });
  });
  giveFields(d, step, map);
}

void addTensorMaps(InstructionTable &table) {
  table["tensormap"] = [](Decoder &d) {
    if (d.take("replace"))
      return decodeReplace(d);
    if (d.take("cp_fenceproxy"))
      return decodeCopyAndFence(d);
    d.unsupported();
  };
}

} // namespace kiln::simulator
