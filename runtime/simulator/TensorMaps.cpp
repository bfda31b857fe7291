// tensormap.replace, tensormap.cp_fenceproxy and fence.proxy.tensormap: tensor maps that a kernel creates or changes.
//
// A block may use a changed map in global memory only if one of its threads has acquired it through the proxy fence
// since the change.

#include "runtime/simulator/BulkCopies.h"
#include "runtime/simulator/Cta.h"
#include "runtime/simulator/Shadow.h"
#include "runtime/simulator/TensorMap.h"

#include <bit>
#include <fmt/format.h>

namespace kiln::simulator {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

// --- Fields --------------------------------------------------------------------------------------------------------

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

/// slots: 1 value; detail: the field | the ordinal << 8 | 8-byte value << 16. The list holds the address.
static void runReplace(Warp &warp, const Step &step) {
  const uint32_t *list = warp.list(step);
  for (int lane = 0; lane < lanesOfWarp; ++lane) {
    if (!(warp.exec >> lane & 1))
      continue;
    const uint64_t address = AddressOperand::of(warp, list, lane);
    char *at = locate(warp, step, lane, AddressOperand::space(list), address, sizeof(TensorMap), 64, AccessKind::write);
    if (!at)
      continue;
    TensorMap map;
    std::memcpy(&map, at, sizeof(map));
    setField(map, static_cast<Field>(step.detail & 0xff), static_cast<uint32_t>(step.detail >> 8 & 0xff),
             step.detail >> 16 ? warp.reg<uint64_t>(step.slots[1])[lane] : warp.reg<uint32_t>(step.slots[1])[lane]);
    std::memcpy(at, &map, sizeof(map));
    if (!sharedPlace(warp, at))
      warp.cta.grid.tensorMaps.changed(reinterpret_cast<uint64_t>(at));
  }
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
  std::vector<uint32_t> list;
  AddressOperand::append(d.address(d.operand(0), space), list);
  const uint32_t value = d.source(hasOrdinal ? 2 : 1, wide ? Type::b64 : Type::b32);
  d.giveList(
      d.emit(runReplace, {Step::none, value}, static_cast<uint64_t>(number) | ordinal << 8 | uint64_t{wide} << 16),
      list);
}

// --- Copy and fence ------------------------------------------------------------------------------------------------

/// The list holds the addresses of the destination and the source.
static void runCopyAndFence(Warp &warp, const Step &step) {
  const uint32_t *list = warp.list(step);
  const int lane = std::countr_zero(warp.exec); // all lanes have the same addresses
  char *to = locate(warp, step, lane, AddressOperand::space(list), AddressOperand::of(warp, list, lane),
                    sizeof(TensorMap), 64, AccessKind::warpWrite);
  const uint32_t *source = list + AddressOperand::words;
  const char *from = locate(warp, step, lane, AddressOperand::space(source), AddressOperand::of(warp, source, lane),
                            sizeof(TensorMap), 64, AccessKind::warpRead);
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
  std::vector<uint32_t> list;
  AddressOperand::append(d.address(d.operand(0), to), list);
  AddressOperand::append(d.address(d.operand(1), from), list);
  d.giveList(d.emit(runCopyAndFence), list);
}

void decodeTensorMapFence(Decoder &d) {
  const bool acquires = d.take("acquire");
  if ((!acquires && !d.take("release")) || d.takeOne({"cta", "cluster", "gpu", "sys"}) < 0)
    d.unsupported();
  d.expectCount(acquires ? 2 : 0, acquires ? 2 : 0);
  if (!acquires)
    return;
  expectMapBytes(d, 1);
  std::vector<uint32_t> list;
  AddressOperand::append(d.address(d.operand(0), Space::generic), list);
  d.giveList(d.emit([](Warp &warp, const Step &step) {
    const uint32_t *list = warp.list(step);
    for (int lane = 0; lane < lanesOfWarp; ++lane) {
      if (!(warp.exec >> lane & 1))
        continue;
      if (const char *at = locate(warp, step, lane, AddressOperand::space(list), AddressOperand::of(warp, list, lane),
                                  sizeof(TensorMap), 64, AccessKind::read, true)) {
        const auto address = reinterpret_cast<uint64_t>(at);
        warp.cta.acquiredMaps[address] = warp.cta.grid.tensorMaps.version(address);
      }
    }
  }),
             list);
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
