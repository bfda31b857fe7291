// What a path waits for, what helps when no path can go on, and who waits for what when nothing does.

#include "runtime/simulator/Cta.h"
#include "runtime/simulator/Shadow.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

namespace kiln::simulator {

/// Turns in which all who wait have asked in vain, and nothing has happened, before it is a deadlock: so many that
/// other blocks, for which they may wait through global memory, have had their turns.
static constexpr int mostFruitless = 200;

bool Cta::stillWaits(const Warp &warp, const Wait &wait) const {
  switch (wait.kind) {
  case Wait::Kind::none:
    return false;
  case Wait::Kind::barrier:
    return phaseOf(static_cast<int>(wait.index)) == wait.phase;
  case Wait::Kind::mbarrier: {
    const Mbarriers::Object *object = mbarriers.find(wait.index);
    return object && object->phase == wait.phase && wait.round == round;
  }
  case Wait::Kind::bulkGroups:
    return bulk.pending(warp.index, wait.lanes, wait.index, wait.onlyReads);
  case Wait::Kind::registers:
    return freeRegisters < static_cast<int64_t>(wait.index) * lanesOfWarp;
  }
  return false;
}

void Cta::report(Check check, const ptx::Place &place, const std::string &text) {
  if (grid.checks.has(check))
    findings.add(check, place,
                 fmt::format("{} (block {},{},{})", text, coordinates[0], coordinates[1], coordinates[2]));
}

int Cta::engineOf(uint32_t mbarrier) const { return shadow ? shadow->order.engine(mbarrier / 8) : 0; }

void Cta::completeTransactions(uint32_t mbarrier, int64_t bytes, const ptx::Place &place) {
  Mbarriers::Object *object = mbarriers.find(mbarrier);
  if (!object)
    return report(Check::mbarrier, place,
                  fmt::format("its bytes come to an mbarrier at {}, {}", mbarrier, mbarriers.absence(mbarrier)));
  if (shadow)
    shadow->order.release(engineOf(mbarrier), object->clock);
  const std::string fault = mbarriers.complete(*object, bytes);
  mbarriers.endIfDue(*object);
  if (!fault.empty())
    report(Check::mbarrier, place, fault);
}

void Cta::arriveBehindCopies(uint32_t mbarrier, const ptx::Place &place, const Clock &clock,
                             const std::vector<int> &engines) {
  Mbarriers::Object *object = mbarriers.find(mbarrier);
  if (!object)
    return report(Check::mbarrier, place,
                  fmt::format("arrives behind copies at an mbarrier at {}, {}", mbarrier, mbarriers.absence(mbarrier)));
  if (shadow) {
    object->clock.join(clock);
    for (const int engine : engines)
      shadow->order.release(engine, object->clock);
  }
  const std::string fault = mbarriers.arrive(*object, 1, false);
  mbarriers.endIfDue(*object);
  if (!fault.empty())
    report(Check::mbarrier, place, fault);
}

/// A number that changes when something happens that somebody may wait for.
int64_t Cta::progress() const {
  const auto finished = std::count_if(warps.begin(), warps.end(), [](const Warp &warp) { return warp.finished(); });
  return barriersEnded + mbarriers.ended() + bulk.done() + finished + freeRegisters;
}

bool Cta::goOn() {
  if (!std::all_of(warps.begin(), warps.end(), [](const Warp &warp) { return warp.idle(); }))
    return true;
  if (bulk.advance())
    return true;
  for (Warp &warp : warps)
    if (warp.goOnAtJoins())
      return true;
  // Who waits for an mbarrier may give up, and who polls may be waiting for another block.
  bool asks = false;
  for (const Warp &warp : warps) {
    asks |= warp.hasPolled();
    warp.forEachWaiting([&](const Path &path) { asks |= path.wait.kind == Wait::Kind::mbarrier; });
  }
  fruitless = progress() == roundProgress ? fruitless + 1 : 0;
  roundProgress = progress();
  ++round;
  if (asks && fruitless < mostFruitless)
    return true;
  reportDeadlock();
  return false;
}

void Cta::reportDeadlock() {
  for (int i = 0; i <= clusterBarrier; ++i) {
    const Barrier &barrier = states[static_cast<size_t>(i)];
    if (barrier.arrived)
      report(Check::deadlock, barrier.place,
             fmt::format("{} waits for {} threads, but only {} have come and no thread can go on",
                         i == clusterBarrier ? "the cluster's barrier" : fmt::format("barrier {}", i), barrier.expected,
                         barrier.arrived));
  }
  for (const Warp &warp : warps)
    warp.forEachWaiting([&](const Path &path) {
      const std::string who = fmt::format("lanes {:#x} of warp {} wait", path.mask, warp.index);
      std::string text;
      if (path.wait.kind == Wait::Kind::mbarrier) {
        const Mbarriers::Object *object = mbarriers.find(path.wait.index);
        text = fmt::format("{} for the end of phase {} of the mbarrier at {}: {} of {} arrivals and {} bytes are "
                           "pending, and no thread can go on",
                           who, path.wait.phase, path.wait.index, object ? object->pending : 0,
                           object ? object->expected : 0, object ? object->transactions : 0);
      } else if (path.wait.kind == Wait::Kind::registers) {
        text = fmt::format("{} for {} registers a lane, but only {} of the block's are free", who, path.wait.index,
                           freeRegisters);
      }
      if (!text.empty())
        report(Check::deadlock, warp.placeOf(path), text);
    });
  for (const Warp &warp : warps)
    if (warp.hasPolled())
      warp.reportPolling();
}

} // namespace kiln::simulator
