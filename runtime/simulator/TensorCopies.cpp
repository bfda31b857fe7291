// cp.async.bulk.tensor, cp.reduce.async.bulk.tensor and their prefetch: boxes of an array that a tensor map describes.
//
// Elements outside the array are filled on loads and skipped on stores; an mbarrier counts the whole box.

#include "runtime/simulator/BulkCopies.h"
#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Cta.h"
#include "runtime/simulator/TensorMap.h"

#include <fmt/format.h>
#include <utility>

namespace kiln::simulator {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

namespace {
/// The list: the map's address, the box's in shared memory, the mbarrier's, the slot of the mask, the reduction's
/// number + 1 or 0, 1 for a load, the rank, the slots of the coordinates.
struct TensorList {
  static constexpr size_t shared = AddressOperand::words, mbarrier = 2 * AddressOperand::words,
                          mask = 3 * AddressOperand::words, reduction = mask + 1, isLoad = mask + 2, rank = mask + 3,
                          coordinates = mask + 4;
};
} // namespace

/// A lane's map; none if it is not a map, which is reported.
static std::optional<TensorMap> mapOf(Warp &warp, const Step &step, int lane, const uint32_t *list) {
  const uint64_t address = AddressOperand::of(warp, list, lane);
  const char *at =
      locate(warp, step, lane, AddressOperand::space(list), address, sizeof(TensorMap), 64, AccessKind::read);
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
                              address));
  }
  std::string fault = faultOf(map);
  if (fault.empty() && map.rank() != static_cast<int>(list[TensorList::rank]))
    fault = fmt::format("expected a tensor map of rank {}, but got {}", list[TensorList::rank], map.rank());
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
  const uint32_t *list = warp.list(step);
  const bool isLoad = list[TensorList::isLoad] != 0;
  for (int lane = 0; lane < lanesOfWarp; ++lane) {
    if (!(warp.exec >> lane & 1))
      continue;
    const std::optional<TensorMap> map = mapOf(warp, step, lane, list);
    if (!map)
      continue;
    expectOnlyBlock(warp, step, lane, list[TensorList::mask]);
    BulkOperation operation = operationOf(warp, step, lane);
    const uint32_t *place = list + TensorList::shared;
    char *shared = locate(warp, step, lane, AddressOperand::space(place), AddressOperand::of(warp, place, lane),
                          map->boxBytes(), 128, isLoad ? AccessKind::write : AccessKind::read, true);
    operation.completion = BulkOperation::Completion::group;
    if (isLoad && !completeAt(warp, step, lane, list + TensorList::mbarrier, map->boxBytes(), operation))
      continue;
    std::array<int32_t, maxTensorRank> coordinates{};
    for (uint32_t i = 0; i < list[TensorList::rank]; ++i)
      coordinates[i] = warp.reg<int32_t>(list[TensorList::coordinates + i])[lane];
    setFill(*map, operation);
    if (const uint32_t reduction = list[TensorList::reduction]) {
      operation.combine = combineFor(static_cast<AtomicOperation>(reduction - 1), typeOf(map->elementType()));
      operation.overwrites = false;
      if (!operation.combine) {
        warp.report(Check::tensorMap, step, lane,
                    fmt::format("the reduction is not supported for elements of type {}",
                                ptx::nameOf(typeOf(map->elementType()))));
        continue;
      }
    }
    if (shared)
      addBox(warp, step, lane, *map, coordinates, shared, isLoad, operation);
    warp.cta.bulk.issue(warp, step, std::move(operation));
  }
}

// --- Decoding ------------------------------------------------------------------------------------------------------

/// Takes `1d` to `5d`.
static uint32_t takeRank(Decoder &d) {
  const int rank = d.takeOne({"1d", "2d", "3d", "4d", "5d"}) + 1;
  if (rank == 0)
    d.wrong("a number of dimensions");
  return static_cast<uint32_t>(rank);
}

/// The operand `[map, {coordinates}]`: appends the map's address to `list`, and returns the slots of the coordinates.
static std::vector<uint32_t> decodeMapOperand(Decoder &d, const Operand &operand, uint32_t rank,
                                              std::vector<uint32_t> &list) {
  AddressOperand::append(d.address(operand, Space::generic), list);
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
  const AtomicOperation reduction = reduces ? takeReduction(d) : AtomicOperation::add;
  d.take("tile");
  decodeCompletion(d, isLoad);
  const bool isMulticast = isLoad && d.take("multicast::cluster"), hasPolicy = d.take("L2::cache_hint");
  if (isLoad)
    d.take("cta_group::1");
  const size_t least = isLoad ? 3 : 2;
  d.expectCount(least + isMulticast + hasPolicy, least + isMulticast + hasPolicy);
  std::vector<uint32_t> list;
  const std::vector<uint32_t> coordinates = decodeMapOperand(d, d.operand(isLoad ? 1 : 0), rank, list);
  AddressOperand::append(d.address(d.operand(isLoad ? 0 : 1), Space::shared), list);
  AddressOperand::append(isLoad ? d.address(d.operand(2), Space::shared) : Decoder::Address{}, list);
  list.push_back(isMulticast ? d.source(3, Type::b16) : Step::none);
  if (hasPolicy)
    d.source(least + isMulticast, Type::b64);
  list.insert(list.end(), {reduces ? static_cast<uint32_t>(reduction) + 1 : 0, isLoad, rank});
  list.insert(list.end(), coordinates.begin(), coordinates.end());
  d.giveList(d.emit(runTensorCopy), list);
}

/// A prefetch has no effect, but its map is checked.
void decodeTensorPrefetch(Decoder &d) {
  const uint32_t rank = takeRank(d);
  if (!d.take("L2") || !d.take("global"))
    d.unsupported();
  d.take("tile");
  const bool hasPolicy = d.take("L2::cache_hint");
  d.expectCount(1 + hasPolicy, 1 + hasPolicy);
  std::vector<uint32_t> list;
  decodeMapOperand(d, d.operand(0), rank, list);
  if (hasPolicy)
    d.source(1, Type::b64);
  list.resize(TensorList::rank, 0);
  list.push_back(rank);
  d.giveList(d.emit([](Warp &warp, const Step &step) {
    for (int lane = 0; lane < lanesOfWarp; ++lane)
      if (warp.exec >> lane & 1)
        mapOf(warp, step, lane, warp.list(step));
  }),
             list);
}

} // namespace kiln::simulator
