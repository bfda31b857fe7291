// Detects deadlocks: the conditions that paths wait for, ways to proceed if no path can, and the report if none is
// left.

#include "runtime/simulator/Cta.h"
#include "runtime/simulator/Shadow.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <map>

namespace kiln::simulator {

/// Turns without any progress after which a block counts as stuck. They are enough for a path that polls several
/// conditions in turn to have polled each, and for a wait with a time limit to end.
static constexpr int maxFruitless = 200;

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
  case Wait::Kind::lanes:
    return (wait.lanes & warp.alive) != 0;
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
    return report(
        Check::mbarrier, place,
        fmt::format("its bytes come to an mbarrier at {}, {}", placeText(mbarrier), mbarriers.absence(mbarrier)));
  if (shadow)
    shadow->order.release(engineOf(mbarrier), object->clock);
  const std::string fault = mbarriers.complete(*object, bytes);
  mbarriers.endIfDue(*object);
  if (!fault.empty())
    report(Check::mbarrier, place, fault);
}

void Cta::arriveAfterCopies(uint32_t mbarrier, const ptx::Place &place, const Clock &clock,
                            const std::vector<int> &engines) {
  Mbarriers::Object *object = mbarriers.find(mbarrier);
  if (!object)
    return report(
        Check::mbarrier, place,
        fmt::format("arrives after copies at an mbarrier at {}, {}", placeText(mbarrier), mbarriers.absence(mbarrier)));
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

/// A number that changes with every event that a path may wait for.
int64_t Cta::progress() const {
  const auto finished = std::count_if(warps.begin(), warps.end(), [](const Warp &warp) { return warp.finished(); });
  return barriersEnded + mbarriers.ended() + bulk.done() + finished + freeRegisters;
}

bool Cta::letGoAtJoins() {
  return std::any_of(warps.begin(), warps.end(), [](Warp &warp) { return warp.letGoAtJoins(); });
}

bool Cta::letGoAlone() {
  return std::any_of(warps.begin(), warps.end(), [](Warp &warp) { return warp.letGoAlone(); });
}

Cta::Outlook Cta::goOn() {
  if (!std::all_of(warps.begin(), warps.end(), [](const Warp &warp) { return warp.idle(); }))
    return Outlook::goesOn;
  if (bulk.advance())
    return Outlook::goesOn;
  bool asks = false, spins = false;
  for (const Warp &warp : warps)
    warp.forEachPath([&](const Path &path) {
      asks |= path.asked.kind != Wait::Kind::none || path.wait.kind == Wait::Kind::mbarrier;
      spins |= path.stuckAt != 0;
    });
  // No other block can end the wait of paths that wait only for their own block.
  if (!spins && (letGoAtJoins() || letGoAlone()))
    return Outlook::goesOn;
  // A wait for an mbarrier may time out, and a polling path may wait for another block.
  fruitless = progress() == roundProgress && moment() == roundMoment ? fruitless + 1 : 0;
  roundProgress = progress();
  roundMoment = moment();
  ++round;
  if (asks && fruitless < maxFruitless)
    return Outlook::goesOn;
  return spins || asks ? Outlook::stuck : Outlook::hopeless;
}

// --- The report ----------------------------------------------------------------------------------------------------

/// "warp 3", "warps 0, 2 and 3" of a mask.
static std::string warpsOf(uint32_t mask) {
  std::string text = std::popcount(mask) == 1 ? "warp " : "warps ";
  for (uint32_t left = mask; left; left &= left - 1)
    text += fmt::format("{}{}", left == mask ? "" : std::popcount(left) == 1 ? " and " : ", ", std::countr_zero(left));
  return text;
}

static std::string nameOfBarrier(int barrier) {
  return barrier == Cta::clusterBarrier ? "the cluster's barrier" : fmt::format("barrier {}", barrier);
}

/// The condition that a blocked path waits for.
static const Wait &waitOf(const Path &path) { return path.wait.kind == Wait::Kind::none ? path.asked : path.wait; }

std::string Cta::describePlace(const Wait &wait) const {
  switch (wait.kind) {
  case Wait::Kind::none:
    return "running";
  case Wait::Kind::barrier:
    return fmt::format("at {}", nameOfBarrier(static_cast<int>(wait.index)));
  case Wait::Kind::mbarrier:
    return fmt::format("at the mbarrier at {}", placeText(wait.index));
  case Wait::Kind::bulkGroups:
    return "waiting for bulk copies";
  case Wait::Kind::registers:
    return "waiting for registers";
  case Wait::Kind::lanes:
    return fmt::format("waiting for lanes {:#x}", wait.lanes);
  }
  return {};
}

/// The state of the lanes that do not wait for this: "; warps 0 and 2: ended; warp 3: at barrier 1, k.cu:12".
std::string Cta::elsewhere(const Wait &wait) const {
  std::map<std::string, uint32_t> warpsAt;
  for (const Warp &warp : warps) {
    const uint32_t bit = 1u << warp.index;
    if (warp.alive != warp.started)
      warpsAt[warp.finished() ? "ended" : "ended in part"] |= bit;
    warp.forEachPath([&](const Path &path) {
      if (!waitOf(path).isLike(wait))
        warpsAt[fmt::format("{}, {}", describePlace(waitOf(path)), grid.program.textOf(warp.placeOf(path)))] |= bit;
    });
  }
  std::string text;
  for (const auto &[where, mask] : warpsAt)
    text += fmt::format("; {}: {}", warpsOf(mask), where);
  return text;
}

/// The pending counts of an mbarrier, and the warps that arrived: "1 of 2 arrivals and 0 bytes are pending, warp 0 has
/// arrived".
std::string Cta::describeMissing(uint32_t mbarrier) const {
  const Mbarriers::Object *object = mbarriers.find(mbarrier);
  if (!object)
    return "which has been invalidated";
  std::string text = fmt::format("{} of {} arrivals and {} bytes are pending", object->pending, object->expected,
                                 object->transactions);
  if (object->transactions > 0)
    text += ", which no copy under way brings";
  if (object->came)
    text += fmt::format(", {} arrived", warpsOf(object->came));
  return text;
}

void Cta::reportDeadlock() {
  static const char *const end = ", and no thread can make progress";
  for (int i = 0; i <= clusterBarrier; ++i) {
    const Barrier &barrier = states[static_cast<size_t>(i)];
    const Wait wait = {.kind = Wait::Kind::barrier, .index = static_cast<uint32_t>(i)};
    if (barrier.arrived)
      report(Check::deadlock, barrier.place,
             fmt::format("{} waits for {} threads, but only {} have come, from {}{}{}", nameOfBarrier(i),
                         barrier.expected, barrier.arrived, warpsOf(barrier.came), end, elsewhere(wait)));
  }
  for (const Warp &warp : warps)
    warp.forEachPath([&](const Path &path) {
      const Wait &wait = waitOf(path);
      const std::string who = fmt::format("lanes {:#x} of warp {} wait", path.mask, warp.index);
      std::string text;
      if (wait.kind == Wait::Kind::mbarrier)
        text = fmt::format("{} for the end of phase {} of the mbarrier at {}: {}{}", who, wait.phase,
                           placeText(wait.index), describeMissing(wait.index), end);
      else if (wait.kind == Wait::Kind::registers)
        text = fmt::format("{} for {} registers a lane, but only {} of the block's are free", who, wait.index,
                           freeRegisters);
      else if (warp.isStuck(path))
        text = fmt::format("lanes {:#x} of warp {} spin in a loop until memory changes{}", path.mask, warp.index, end);
      if (!text.empty()) // barriers were reported
        report(Check::deadlock, warp.placeOf(path), text + elsewhere(wait));
    });
}

} // namespace kiln::simulator
