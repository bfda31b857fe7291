// cp.async.bulk and cp.reduce.async.bulk on plain bytes, prefetches, and groups of bulk operations.

#include "runtime/simulator/BulkCopies.h"

#include "runtime/simulator/Cta.h"
#include "runtime/simulator/Shadow.h"

#include <bit>
#include <fmt/format.h>

namespace kiln::simulator {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

// --- Common parts of bulk instructions -----------------------------------------------------------------------------

void AddressOperand::append(const Decoder::Address &address, std::vector<uint32_t> &list) {
  const auto offset = static_cast<uint64_t>(address.offset);
  list.insert(list.end(), {static_cast<uint32_t>(address.space), address.slot, address.wide,
                           static_cast<uint32_t>(offset), static_cast<uint32_t>(offset >> 32)});
}

uint64_t AddressOperand::of(Warp &warp, const uint32_t *list, int lane) {
  const uint64_t offset = list[3] | static_cast<uint64_t>(list[4]) << 32;
  if (list[1] == Step::none)
    return offset;
  return list[2] ? warp.reg<uint64_t>(list[1])[lane] + offset
                 : static_cast<uint32_t>(warp.reg<uint32_t>(list[1])[lane] + offset);
}

BulkOperation operationOf(Warp &warp, const Step &step, int lane) {
  BulkOperation operation;
  operation.warp = warp.index;
  operation.lane = lane;
  operation.place = warp.place(step);
  return operation;
}

bool completeAt(Warp &warp, const Step &step, int lane, const uint32_t *list, uint32_t bytes,
                BulkOperation &operation) {
  const char *at = locate(warp, step, lane, AddressOperand::space(list), AddressOperand::of(warp, list, lane), 8, 8,
                          AccessKind::mbarrier);
  const auto place = at ? sharedPlace(warp, at) : std::nullopt;
  const Mbarriers::Object *object = place ? warp.cta.mbarriers.find(*place) : nullptr;
  if (object) {
    if (warp.cta.shadow && object->made.time && !object->madeFenced &&
        !warp.cta.shadow->order.isFenced(object->made, warp.index))
      warp.report(Check::proxy, step, lane,
                  fmt::format("an asynchronous engine is to complete bytes at the mbarrier at {}, with no "
                              "fence.proxy.async or fence.mbarrier_init since it was made",
                              warp.cta.placeText(*place)));
    operation.completion = BulkOperation::Completion::mbarrier;
    operation.mbarrier = *place;
    operation.transactions = bytes;
    return true;
  }
  if (place)
    warp.report(Check::mbarrier, step, lane,
                fmt::format("is to complete bytes at an mbarrier at {}, {}", warp.cta.placeText(*place),
                            warp.cta.mbarriers.absence(*place)));
  else if (at)
    warp.report(Check::mbarrier, step, lane, "expected an mbarrier in shared memory, but got an address elsewhere");
  return false;
}

void expectOnlyBlock(Warp &warp, const Step &step, int lane, uint32_t slot) {
  if (slot == Step::none)
    return;
  if (const uint32_t mask = warp.reg<uint32_t>(slot)[lane] & 0xffff; mask != 1)
    warp.report(Check::bounds, step, lane,
                fmt::format("expected a mask of the cluster's blocks, of which there is one, but got {:#x}", mask));
}

// --- Copies --------------------------------------------------------------------------------------------------------

namespace {
/// The list of a copy: two addresses, the mbarrier's, the slots of the number of bytes and of the mask, the reduction's
/// number + 1 or 0, its type.
struct CopyList {
  static constexpr size_t from = AddressOperand::words, mbarrier = 2 * AddressOperand::words,
                          size = 3 * AddressOperand::words, mask = size + 1, reduction = size + 2, type = size + 3;
};
} // namespace

static void runCopy(Warp &warp, const Step &step) {
  const uint32_t *list = warp.list(step);
  const bool toGroup = AddressOperand::space(list) == Space::global;
  for (int lane = 0; lane < lanesOfWarp; ++lane) {
    if (!(warp.exec >> lane & 1))
      continue;
    const uint32_t bytes = warp.reg<uint32_t>(list[CopyList::size])[lane];
    if (bytes % 16 != 0 || bytes > 1u << 30) {
      warp.report(Check::alignment, step, lane,
                  fmt::format("expected a number of bytes that is a multiple of 16, but got {}", bytes));
      continue;
    }
    expectOnlyBlock(warp, step, lane, list[CopyList::mask]);
    BulkOperation operation = operationOf(warp, step, lane);
    char *to = locate(warp, step, lane, AddressOperand::space(list), AddressOperand::of(warp, list, lane), bytes, 16,
                      AccessKind::write, true);
    const uint32_t *source = list + CopyList::from;
    const char *from = locate(warp, step, lane, AddressOperand::space(source), AddressOperand::of(warp, source, lane),
                              bytes, 16, AccessKind::read, true);
    if (toGroup)
      operation.completion = BulkOperation::Completion::group;
    else if (!completeAt(warp, step, lane, list + CopyList::mbarrier, bytes, operation))
      continue;
    if (to && from)
      operation.pieces.push_back({to, from, bytes});
    if (list[CopyList::reduction]) {
      operation.combine = combineFor(static_cast<AtomicOperation>(list[CopyList::reduction] - 1),
                                     static_cast<Type>(list[CopyList::type]));
      operation.overwrites = false;
    }
    warp.cta.bulk.issue(warp, step, std::move(operation));
  }
}

std::pair<Space, Space> takeSpaces(Decoder &d) {
  const std::vector<std::string_view> rest = d.rest();
  std::array<Space, 2> spaces{};
  for (size_t i = 0; i < 2; ++i) {
    if (i >= rest.size() || (rest[i] != "global" && rest[i] != "shared::cta" && rest[i] != "shared::cluster"))
      d.wrong("the state spaces of the destination and the source");
    d.take(rest[i]);
    spaces[i] = rest[i] == "global" ? Space::global : Space::shared;
  }
  return {spaces[0], spaces[1]};
}

void decodeCompletion(Decoder &d, bool intoShared) {
  if (!d.take(intoShared ? "mbarrier::complete_tx::bytes" : "bulk_group"))
    d.wrong(intoShared ? "'.mbarrier::complete_tx::bytes'" : "'.bulk_group'");
}

/// A prefetch has no visible effect, but its operands are checked.
static void decodePrefetch(Decoder &d) {
  const bool hasPolicy = d.take("L2::cache_hint");
  if (!d.take("L2") || !d.take("global"))
    d.unsupported();
  d.expectCount(2 + hasPolicy, 2 + hasPolicy);
  d.address(d.operand(0), Space::global);
  d.source(1, Type::u32);
}

static void decodeGroups(Decoder &d, bool waits) {
  if (!waits) {
    d.expectCount(0, 0);
    d.emit([](Warp &warp, const Step &) { warp.cta.bulk.commit(warp.index, warp.exec); });
    return;
  }
  const bool onlyReads = d.take("read");
  d.expectCount(1, 1);
  if (d.operand(0).kind != Operand::Kind::integer)
    d.wrong("a number of groups");
  Step &step = d.emit(
      [](Warp &warp, const Step &step) {
        const auto most = static_cast<uint32_t>(step.detail);
        const bool onlyReads = step.target != 0;
        if (warp.cta.bulk.pending(warp.index, warp.exec, most, onlyReads))
          return warp.waitFor(
              {.kind = Wait::Kind::bulkGroups, .onlyReads = onlyReads, .index = most, .lanes = warp.exec});
        warp.cta.bulk.see(warp.index, warp.exec, most, onlyReads);
      },
      {}, d.operand(0).bits);
  step.target = onlyReads;
}

void decodeBulkCopy(Decoder &d, bool reduces) {
  if (!reduces) {
    if (d.take("prefetch"))
      return d.take("tensor") ? decodeTensorPrefetch(d) : decodePrefetch(d);
    if (const int group = d.takeOne({"commit_group", "wait_group"}); group >= 0)
      return decodeGroups(d, group == 1);
  }
  if (d.take("tensor"))
    return decodeTensorCopy(d, reduces);
  const auto [to, from] = takeSpaces(d);
  if (to == from && to == Space::global)
    d.unsupported();
  const bool intoShared = to == Space::shared;
  decodeCompletion(d, intoShared);
  const bool isMulticast = intoShared && !reduces && d.take("multicast::cluster"), hasPolicy = d.take("L2::cache_hint");
  const uint32_t least = intoShared ? 4 : 3;
  d.expectCount(least + isMulticast + hasPolicy, least + isMulticast + hasPolicy);
  std::vector<uint32_t> list;
  AddressOperand::append(d.address(d.operand(0), to), list);
  AddressOperand::append(d.address(d.operand(1), from), list);
  AddressOperand::append(intoShared ? d.address(d.operand(3), Space::shared) : Decoder::Address{}, list);
  if (d.operand(2).kind == ptx::Operand::Kind::integer && d.operand(2).bits % 16 != 0)
    d.wrong("a multiple of 16 bytes");
  list.push_back(d.source(2, Type::u32));
  list.push_back(isMulticast ? d.source(4, Type::b16) : Step::none);
  if (hasPolicy)
    d.source(least + isMulticast, Type::b64);
  if (reduces) {
    const AtomicOperation reduction = takeReduction(d);
    const bool isExact = d.take("noftz");
    const Type type = d.type();
    if ((type == Type::f16 || type == Type::bf16) && reduction == AtomicOperation::add && !isExact)
      d.wrong("'.noftz'");
    if (!combineFor(reduction, type))
      d.unsupported();
    list.insert(list.end(), {static_cast<uint32_t>(reduction) + 1, static_cast<uint32_t>(type)});
  } else {
    list.insert(list.end(), {0, 0});
  }
  d.giveList(d.emit(runCopy), list);
}

} // namespace kiln::simulator
