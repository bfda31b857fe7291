// Turns of warps, barriers, special registers.

#include "runtime/simulator/Cta.h"

#include "dialect/dsl/Types.h"
#include "runtime/simulator/Progress.h"
#include "runtime/simulator/Shadow.h"
#include "runtime/simulator/ptx/Parser.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <numeric>

namespace kiln::simulator {

/// Swizzles of asynchronous copies depend on address bits below this.
static constexpr uint32_t sharedAlignment = 1024;

Cta::Cta(const Grid &grid, const Extents &coordinates) : grid(grid), coordinates(coordinates), findings(grid.findings) {
  sharedSize = grid.program.sharedBytes + grid.dynamicShared;
  sharedStorage.resize(sharedSize + sharedAlignment);
  const auto address = reinterpret_cast<uint64_t>(sharedStorage.data());
  sharedMemory = sharedStorage.data() + (sharedAlignment - address % sharedAlignment) % sharedAlignment;
  const int count = (grid.threads() + lanesOfWarp - 1) / lanesOfWarp;
  left.resize(static_cast<size_t>(count));
  warpgroups.resize(static_cast<size_t>((count + warpsOfGroup - 1) / warpsOfGroup));
  if (grid.globalShadow) {
    const auto number = // modulo 2³²: blocks so far apart do not run at the same time
        static_cast<uint32_t>(coordinates[0]) +
        static_cast<uint32_t>(grid.grid[0]) *
            (static_cast<uint32_t>(coordinates[1]) +
             static_cast<uint32_t>(grid.grid[1]) * static_cast<uint32_t>(coordinates[2]));
    shadow = std::make_unique<Shadow>(*grid.globalShadow, number, grid.threads(), sharedMemory, sharedSize);
  }
  for (int i = 0; i < count; ++i)
    warps.emplace_back(*this, grid.program, i, grid.threads());
}

Cta::~Cta() = default;

bool Cta::run(int64_t budget, bool reversed, uint64_t now) {
  turnsMoment = now;
  bool any = false;
  for (size_t i = 0; i < warps.size(); ++i) {
    Warp &warp = warps[reversed ? warps.size() - 1 - i : i];
    if (warp.finished())
      continue;
    warp.run(grid.maxSteps ? std::min(budget, grid.maxSteps - warp.stepsDone()) : budget);
    if (grid.maxSteps && warp.stepsDone() >= grid.maxSteps && warp.canGoOn())
      throw Error(fmt::format("kernel '{}': warp {} has not ended after {} instructions, the last one at {}",
                              grid.program.name, warp.index, warp.stepsDone(), grid.program.textOf(warp.lastPlace())));
    bulk.advanceAtRandom();
    any |= !warp.finished();
  }
  return any;
}

void Cta::noteChange() { grid.progress->note(thread); }

// --- Barriers ------------------------------------------------------------------------------------------------------

int Cta::threadsLeft() const { return std::accumulate(left.begin(), left.end(), 0); }

bool Cta::endPhaseIfDue(int index) {
  Barrier &barrier = states[static_cast<size_t>(index)];
  const bool ofAll = barrier.expected == grid.threads();
  if (barrier.expected == 0 || barrier.arrived + (ofAll ? threadsLeft() : 0) < barrier.expected)
    return false;
  if (shadow) {
    if (ofAll)
      barrier.clock.join(leftClock); // accesses of exited threads happen before
    for (uint32_t left = barrier.waiting; left; left &= left - 1)
      shadow->order.acquire(std::countr_zero(left), allLanes, barrier.clock);
  }
  if (barrier.reduces)
    for (uint32_t left = barrier.waiting; left; left &= left - 1)
      warps[static_cast<size_t>(std::countr_zero(left))].giveTally(index, barrier.phase, barrier.tally);
  barrier = {.phase = barrier.phase + 1, .ended = std::move(barrier.clock)};
  ++barriersEnded;
  return true;
}

void Cta::arrive(Warp &warp, const Step &step, const Arrival &arrival) {
  Barrier &barrier = states[static_cast<size_t>(arrival.barrier)];
  const int expected = arrival.threads ? arrival.threads : grid.threads();
  const auto complain = [&](const std::string &text) {
    warp.report(Check::barrier, step, std::countr_zero(warp.exec), text);
  };
  if (barrier.arrived == 0) {
    barrier.expected = expected;
    barrier.place = warp.place(step);
    barrier.reduces = arrival.reduces;
  } else if (barrier.expected != expected) {
    complain(fmt::format("barrier {} was begun for {} threads, but is joined for {}", arrival.barrier, barrier.expected,
                         expected));
  } else if (barrier.reduces != arrival.reduces) {
    complain(fmt::format("barrier {} was begun with{} a reduction, but is joined with{}", arrival.barrier,
                         barrier.reduces ? "" : "out", arrival.reduces ? " one" : "out"));
  }
  barrier.arrived += std::popcount(warp.exec);
  barrier.came |= 1u << warp.index;
  barrier.tally.held += std::popcount(warp.exec & arrival.predicate);
  barrier.tally.lacked += std::popcount(warp.exec & ~arrival.predicate);
  if (shadow)
    shadow->order.release(warp.index, barrier.clock);
  if (!arrival.onlyArrives)
    barrier.waiting |= 1u << warp.index;
  const Tally tally = barrier.tally;
  const uint64_t phase = barrier.phase;
  warp.path.spin = {}; // the loop involves other warps
  if (endPhaseIfDue(arrival.barrier)) {
    warp.path.woken.tally = tally;
    const Wait ended = {
        .kind = Wait::Kind::barrier, .index = static_cast<uint32_t>(arrival.barrier), .phase = phase, .tally = tally};
    if (!arrival.onlyArrives && warp.exec == warp.path.mask && repeatsAt(ended, warp))
      for (Warp &each : warps)
        if (!each.finished())
          each.repeatFrom(ended, turnsMoment);
  } else if (!arrival.onlyArrives) {
    warp.waitAtBarrier(arrival.barrier, phase);
  }
}

void Cta::waitFor(Warp &warp, int index, uint64_t phase) {
  Barrier &barrier = states[static_cast<size_t>(index)];
  warp.path.spin = {};
  if (barrier.phase == phase) {
    barrier.waiting |= 1u << warp.index;
    warp.waitAtBarrier(index, phase);
  } else if (shadow) {
    shadow->order.acquire(warp.index, warp.exec, barrier.ended);
  }
}

void Cta::lanesLeft(const Warp &warp) {
  left[static_cast<size_t>(warp.index)] = std::popcount(warp.started & ~warp.alive);
  if (shadow) {
    shadow->order.release(warp.index, leftClock);
    shadow->order.leave(warp.index, ~warp.alive);
  }
  for (int i = 0; i <= clusterBarrier; ++i)
    if (states[static_cast<size_t>(i)].arrived)
      endPhaseIfDue(i);
}

// --- Special registers ---------------------------------------------------------------------------------------------

Extents Cta::threadCoordinates(int thread) const {
  return {thread % grid.block[0], thread / grid.block[0] % grid.block[1], thread / grid.block[0] / grid.block[1]};
}

/// The value of a special register that is equal in all lanes.
static uint64_t uniformSpecial(const Cta &cta, const Warp &warp, ptx::Special special) {
  using S = ptx::Special;
  const auto between = [&](S first) { return static_cast<size_t>(special) - static_cast<size_t>(first); };
  const auto dimension = [](const Extents &extents, size_t i) { return static_cast<uint64_t>(extents[i]); };
  if (special >= S::ntidX && special <= S::ntidZ)
    return dimension(cta.grid.block, between(S::ntidX));
  if (special >= S::ctaidX && special <= S::ctaidZ)
    return dimension(cta.coordinates, between(S::ctaidX));
  if (special >= S::nctaidX && special <= S::nctaidZ)
    return dimension(cta.grid.grid, between(S::nctaidX));
  if (special >= S::clusteridX && special <= S::clusteridZ) // a cluster is one block
    return dimension(cta.coordinates, between(S::clusteridX));
  if (special >= S::nclusteridX && special <= S::nclusteridZ)
    return dimension(cta.grid.grid, between(S::nclusteridX));
  switch (special) {
  case S::warpid:
    return static_cast<uint64_t>(warp.index);
  case S::nwarpid:
    return static_cast<uint64_t>((cta.grid.threads() + lanesOfWarp - 1) / lanesOfWarp);
  case S::nsmid:
  case S::clusterNctaidX:
  case S::clusterNctaidY:
  case S::clusterNctaidZ:
  case S::clusterNctarank:
    return 1;
  case S::dynamicSmemSize:
    return cta.grid.dynamicShared;
  case S::totalSmemSize:
    return cta.sharedBytes();
  case S::warpSize:
    return lanesOfWarp;
  default:
    return 0;
  }
}

static uint32_t laneSpecial(const Cta &cta, const Warp &warp, ptx::Special special, int lane) {
  using S = ptx::Special;
  const Mask bit = Mask{1} << lane;
  switch (special) {
  case S::tidX:
  case S::tidY:
  case S::tidZ:
    return static_cast<uint32_t>(
        cta.threadCoordinates(warp.threadOf(lane))[static_cast<size_t>(special) - static_cast<size_t>(S::tidX)]);
  case S::laneid:
    return static_cast<uint32_t>(lane);
  case S::lanemaskEq:
    return bit;
  case S::lanemaskLe:
    return bit | (bit - 1);
  case S::lanemaskLt:
    return bit - 1;
  case S::lanemaskGe:
    return ~(bit - 1);
  case S::lanemaskGt:
    return ~(bit | (bit - 1));
  default:
    return static_cast<uint32_t>(uniformSpecial(cta, warp, special));
  }
}

void Cta::fillSpecial(const Warp &warp, int special, bool wide, char *to) const {
  const auto name = static_cast<ptx::Special>(special);
  for (int lane = 0; lane < lanesOfWarp; ++lane)
    if (wide)
      reinterpret_cast<uint64_t *>(to)[lane] = uniformSpecial(*this, warp, name);
    else
      reinterpret_cast<uint32_t *>(to)[lane] = laneSpecial(*this, warp, name, lane);
}

} // namespace kiln::simulator
