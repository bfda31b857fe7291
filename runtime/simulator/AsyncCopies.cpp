// The queue of copies, and cp.async with its groups. Bulk copies (cp.async.bulk) are in other files.

#include "runtime/simulator/AsyncCopies.h"

#include "runtime/simulator/Access.h"
#include "runtime/simulator/BulkCopies.h"
#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Cta.h"
#include "runtime/simulator/Metrics.h"
#include "runtime/simulator/Shadow.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

namespace kiln::simulator {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

static constexpr int poison = 0xff; // NaN in every float type

static void land(const AsyncCopies::Copy &copy, size_t lane) {
  if (copy.sizes[lane] > 0) // otherwise there may be no source
    std::memcpy(copy.to[lane], copy.from[lane], copy.sizes[lane]);
  std::memset(copy.to[lane] + copy.sizes[lane], 0, copy.bytes - copy.sizes[lane]);
}

void AsyncCopies::issue(Copy copy, Delivery delivery, uint64_t seed) {
  copy.groups = committed;
  copy.number = number++;
  copy.engines.fill(-1);
  Mask now = delivery == Delivery::early ? allLanes : 0;
  if (delivery == Delivery::random)
    now = static_cast<Mask>((seed + copies.size()) * 0x9e3779b97f4a7c15 >> 32);
  for (size_t lane = 0; lane < lanesOfWarp; ++lane)
    if (copy.lanes >> lane & 1) {
      if (now >> lane & 1)
        simulator::land(copy, lane);
      else
        std::memset(copy.to[lane], poison, copy.bytes);
    }
  copy.pending = copy.lanes & ~now;
  if (copy.lanes)
    copies.push_back(copy);
}

void AsyncCopies::commit(Mask lanes) {
  for (size_t lane = 0; lane < lanesOfWarp; ++lane)
    committed[lane] += lanes >> lane & 1;
}

template <class Due> void AsyncCopies::land(Warp &warp, Mask lanes, bool waits, Due due) {
  for (Copy &copy : copies)
    for (size_t lane = 0; lane < lanesOfWarp; ++lane)
      if ((copy.lanes & lanes) >> lane & 1 && due(copy, lane)) {
        if (copy.pending >> lane & 1)
          simulator::land(copy, lane);
        const int engine = copy.engines[lane];
        if (warp.cta.shadow)
          warp.cta.shadow->endWrite(engine < 0 ? warp.index : engine, engine < 0 ? static_cast<int>(lane) : 0,
                                    copy.to[lane], copy.bytes);
        if (warp.cta.shadow && engine >= 0 && waits) {
          Clock landed;
          warp.cta.shadow->order.release(engine, landed);
          warp.cta.shadow->order.acquire(warp.index, Mask{1} << lane, landed);
        }
        copy.lanes &= ~(Mask{1} << lane);
      }
  std::erase_if(copies, [](const Copy &copy) { return copy.lanes == 0; });
}

void AsyncCopies::wait(Warp &warp, Mask lanes, uint32_t pending) {
  land(warp, lanes, true, [&](const Copy &copy, size_t lane) { return copy.groups[lane] + pending < committed[lane]; });
}

void AsyncCopies::waitAll(Warp &warp, Mask lanes) {
  land(warp, lanes, true, [](const Copy &, size_t) { return true; });
}

void AsyncCopies::leave(Warp &warp, Mask lanes) {
  for (const Copy &copy : copies)
    if (copy.lanes & lanes)
      warp.cta.report(Check::inFlight, *copy.place,
                      "a thread ends, but has not waited for a copy that it began: the bytes may come when the shared "
                      "memory is another block's");
}

int64_t AsyncCopies::bytesPending(Mask lanes) const {
  int64_t bytes = 0;
  for (const Copy &copy : copies)
    bytes += int64_t{std::popcount(copy.lanes & lanes)} * copy.bytes;
  return bytes;
}

const std::vector<int> &AsyncCopies::assign(size_t lane, int engine) {
  for (Copy &copy : copies)
    if (copy.lanes >> lane & 1 && copy.engines[lane] < 0)
      copy.engines[lane] = engine;
  std::vector<int> &all = engines[lane];
  if (std::find(all.begin(), all.end(), engine) == all.end())
    all.push_back(engine);
  return all;
}

void AsyncCopies::landFirst(Warp &warp, Mask lanes, uint64_t count) {
  land(warp, lanes, false, [&](const Copy &copy, size_t) { return copy.number < count; });
}

// --- cp.async ------------------------------------------------------------------------------------------------------

/// slots: 0 destination, 1 source, 2 bytes of the source or none; list: the source's offset (two words), bytes, wide
/// addresses, the ignore-src predicate or none, whether it is negated.
static void issueCopies(Warp &warp, const Step &step) {
  const uint32_t *list = warp.list(step);
  const AccessShape to = AccessShape::unpack(step.target);
  const auto bytes = static_cast<int>(list[2]);
  const LanePointers targets =
      resolve(warp, step, Space::shared, addressesOf(warp, step, to), bytes, AccessKind::asyncWrite);
  Step source = step;
  source.slots[0] = step.slots[1];
  source.detail = list[0] | static_cast<uint64_t>(list[1]) << 32;
  AccessShape from = to;
  from.wideAddress = list[3] != 0;
  AsyncCopies::Copy copy;
  copy.bytes = static_cast<uint32_t>(bytes);
  copy.place = &warp.place(step);
  const Mask ignoring = list[4] == Step::none ? 0 : warp.predicate(list[4]) ^ (list[5] ? allLanes : 0);
  for (size_t lane = 0; lane < lanesOfWarp; ++lane) {
    const uint32_t wanted = ignoring >> lane & 1          ? 0 // ignored: zeros only
                            : step.slots[2] == Step::none ? copy.bytes
                                                          : warp.reg<uint32_t>(step.slots[2])[lane];
    copy.sizes[lane] = std::min(wanted, copy.bytes);
  }
  // A lane that copies nothing may have any address.
  Mask reading = 0;
  for (size_t lane = 0; lane < lanesOfWarp; ++lane)
    reading |= static_cast<Mask>(copy.sizes[lane] > 0) << lane;
  const Mask executing = warp.exec;
  warp.exec &= reading;
  const LanePointers sources =
      resolve(warp, step, Space::global, addressesOf(warp, source, from), bytes, AccessKind::read, &copy.sizes);
  warp.exec = executing;
  copy.lanes = targets.valid & (sources.valid | ~reading);
  for (size_t lane = 0; lane < lanesOfWarp; ++lane)
    if (copy.lanes >> lane & 1) {
      copy.to[lane] = targets.at[lane];
      copy.from[lane] = sources.valid >> lane & 1 ? sources.at[lane] : nullptr;
    }
  warp.asyncCopies.issue(copy, warp.cta.grid.delivery, warp.cta.grid.seed + static_cast<uint64_t>(warp.index));
}

static void decodeCopy(Decoder &d) {
  const int cached = d.takeOne({"ca", "cg"});
  if (cached < 0 || (!d.take("shared") && !d.take("shared::cta")) || !d.take("global"))
    d.unsupported();
  const bool hasPolicy = d.take("L2::cache_hint");
  d.takeOne({"L2::64B", "L2::128B", "L2::256B"});
  d.expectCount(hasPolicy ? 4 : 3, hasPolicy ? 5 : 4);
  const Operand &size = d.operand(2);
  if (size.kind != Operand::Kind::integer || (size.bits != 4 && size.bits != 8 && size.bits != 16))
    d.wrong("4, 8 or 16 bytes");
  if (cached == 1 && size.bits != 16)
    d.wrong("16 bytes for a copy that passes by the first-level cache");
  if (hasPolicy)
    d.source(d.count() - 1, Type::b64);
  const Decoder::Address to = d.address(d.operand(0), Space::shared), from = d.address(d.operand(1), Space::global);
  const bool hasMore = d.count() - hasPolicy > 3; // bytes of the source, or whether to ignore it
  const bool isIgnored =
      hasMore && d.operand(3).kind == Operand::Kind::reg && d.registerType(d.operand(3)) == Type::pred;
  bool negated = false;
  const uint32_t ignored = isIgnored ? d.predicate(d.operand(3), negated) : Step::none;
  Step &step = d.emit(issueCopies);
  AccessShape shape;
  setAddress(step, shape, to);
  step.slots[1] = from.slot;
  if (hasMore && d.operand(3).kind == Operand::Kind::integer && d.operand(3).bits > size.bits)
    d.wrong("at most as many bytes of the source");
  if (hasMore && !isIgnored)
    step.slots[2] = d.source(3, Type::b32);
  const auto offset = static_cast<uint64_t>(from.offset);
  d.giveList(step, {static_cast<uint32_t>(offset), static_cast<uint32_t>(offset >> 32),
                    static_cast<uint32_t>(size.bits), from.wide, ignored, negated});
}

static void decodeCp(Decoder &d) {
  const bool reduces = d.take("reduce");
  if (!d.take("async"))
    d.unsupported();
  if (d.take("bulk"))
    return decodeBulkCopy(d, reduces);
  if (reduces)
    d.unsupported();
  if (d.take("mbarrier"))
    return decodeCopyArrival(d);
  switch (d.takeOne({"commit_group", "wait_group", "wait_all"})) {
  case 0:
    d.expectCount(0, 0);
    d.emit([](Warp &warp, const Step &) { warp.asyncCopies.commit(warp.exec); });
    return;
  case 1:
    d.expectCount(1, 1);
    if (d.operand(0).kind != Operand::Kind::integer)
      d.wrong("a number of groups");
    d.emit(
        [](Warp &warp, const Step &step) {
          warp.asyncCopies.wait(warp, warp.exec, static_cast<uint32_t>(step.detail));
          if (warp.cta.metrics)
            warp.cta.metrics->at(warp.path.code, warp.path.pc - 1).bytesInFlight +=
                warp.asyncCopies.bytesPending(warp.exec);
        },
        {}, d.operand(0).bits);
    return;
  case 2:
    d.emit([](Warp &warp, const Step &) { warp.asyncCopies.waitAll(warp, warp.exec); });
    return;
  default:
    decodeCopy(d);
  }
}

void addAsyncCopies(InstructionTable &table) { table["cp"] = decodeCp; }

} // namespace kiln::simulator
