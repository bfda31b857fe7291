// bar and barrier with their reductions, bar.warp.sync, and fences, whose order lockstep execution implies.

#include "runtime/simulator/BulkCopies.h"
#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Cta.h"
#include "runtime/simulator/Lanes.h"
#include "runtime/simulator/Shadow.h"

#include <bit>
#include <fmt/format.h>

namespace kiln::simulator {

using ptx::Operand;
using ptx::Type;

/// The one value of a source among the executing lanes.
static uint32_t uniform(Warp &warp, const Step &step, uint32_t slot, const char *what) {
  const auto *values = warp.reg<uint32_t>(slot);
  const int first = std::countr_zero(warp.exec);
  for (int lane = first; lane < lanesOfWarp; ++lane)
    if (warp.exec >> lane & 1 && values[lane] != values[first])
      warp.report(Check::barrier, step, lane,
                  fmt::format("{} is {} in one lane and {} in another", what, values[first], values[lane]));
  return values[first];
}

enum BarrierDetail : uint64_t { onlyArrives = 1, isAligned = 2, reduces = 4, inverts = 8 };

/// Reports an `.aligned` instruction that is not executed by all remaining lanes of the warp.
static void expectConverged(Warp &warp, const Step &step) {
  if ((step.detail & isAligned) && warp.exec != warp.alive)
    warp.report(
        Check::barrier, step, std::countr_zero(warp.alive & ~warp.exec),
        fmt::format("lanes {:#x} are at the barrier, but {:#x} of the warp are elsewhere: all must come together",
                    warp.exec, warp.alive & ~warp.exec));
}

static void runBarrier(Warp &warp, const Step &step) {
  const uint32_t number = uniform(warp, step, step.slots[0], "the barrier's number");
  const uint32_t threads =
      step.slots[1] == Step::none ? 0 : uniform(warp, step, step.slots[1], "the number of threads");
  const int first = std::countr_zero(warp.exec);
  if (number >= Cta::barriers || threads % lanesOfWarp != 0) {
    warp.report(
        Check::barrier, step, first,
        fmt::format("expected a barrier from 0 to 15 and a multiple of 32 threads, but got barrier {} and {} threads",
                    number, threads));
    return;
  }
  expectConverged(warp, step);
  Arrival arrival = {.barrier = static_cast<int>(number),
                     .threads = static_cast<int>(threads),
                     .onlyArrives = (step.detail & onlyArrives) != 0,
                     .reduces = (step.detail & reduces) != 0};
  if (arrival.reduces)
    arrival.predicate = warp.predicate(step.slots[2]) ^ (step.detail & inverts ? allLanes : 0);
  warp.cta.arrive(warp, step, arrival);
}

/// Emits a barrier's step. The operands from `firstOperand` on are its number and, if `count` > 1, the number of
/// threads.
static Step &emitBarrier(Decoder &d, size_t firstOperand, size_t count, uint64_t detail) {
  const auto isNumber = [&](size_t i) { return d.operand(i).kind == ptx::Operand::Kind::integer; };
  if (isNumber(firstOperand) && d.operand(firstOperand).bits > 15)
    d.wrong("a barrier from 0 to 15");
  if (count > 1 && isNumber(firstOperand + 1) && d.operand(firstOperand + 1).bits % lanesOfWarp != 0)
    d.wrong("whole warps of threads");
  const uint32_t number = d.source(firstOperand, Type::u32);
  const uint32_t threads = count > 1 ? d.source(firstOperand + 1, Type::u32) : Step::none;
  return d.emit(runBarrier, {number, threads}, detail);
}

/// One step arrives and waits; a second step, after the wait, takes the result.
static void decodeReduction(Decoder &d, bool aligned) {
  const int operation = d.takeOne({"popc", "and", "or"});
  aligned |= d.take("aligned");
  const Type type = d.type();
  if (operation < 0 || type != (operation == 0 ? Type::u32 : Type::pred))
    d.unsupported();
  d.expectCount(3, 4);
  bool inverted = false;
  const uint32_t predicate = d.predicate(d.operand(d.count() - 1), inverted);
  emitBarrier(d, 1, d.count() - 2,
              uint64_t{reduces} | (aligned ? uint64_t{isAligned} : 0) | (inverted ? uint64_t{inverts} : 0))
      .slots[2] = predicate;
  const uint32_t result = d.result(0, type);
  if (operation == 0)
    d.emit([](Warp &warp,
              const Step &step) { setLanes(warp, step.slots[0], static_cast<uint32_t>(warp.path.woken.tally.held)); },
           {result});
  else
    d.emit(
        [](Warp &warp, const Step &step) {
          const Tally &tally = warp.path.woken.tally;
          const bool holds = step.detail ? tally.held > 0 : tally.lacked == 0;
          warp.setPredicate(step.slots[0], holds ? allLanes : 0);
        },
        {result}, uint64_t{operation == 2});
}

/// barrier.cluster: arriving and waiting are two instructions. A cluster is one block.
static void decodeClusterBarrier(Decoder &d) {
  const int kind = d.takeOne({"arrive", "wait"});
  if (kind < 0)
    d.wrong("'.arrive' or '.wait'");
  d.takeOne({kind == 0 ? "release" : "acquire", "relaxed"});
  const uint64_t detail = d.take("aligned") ? uint64_t{isAligned} : 0;
  d.expectCount(0, 0);
  if (kind == 0)
    d.emit(
        [](Warp &warp, const Step &step) {
          expectConverged(warp, step);
          const uint64_t phase = warp.cta.phaseOf(Cta::clusterBarrier);
          forEachLane(warp, [&](int lane) { warp.clusterPhases[static_cast<size_t>(lane)] = phase + 1; });
          warp.cta.arrive(warp, step, {.barrier = Cta::clusterBarrier, .onlyArrives = true});
        },
        {}, detail);
  else
    d.emit(
        [](Warp &warp, const Step &step) {
          expectConverged(warp, step);
          const auto lane = static_cast<size_t>(std::countr_zero(warp.exec));
          const uint64_t arrived = warp.clusterPhases[lane];
          forEachLane(warp, [&](int other) { warp.clusterPhases[static_cast<size_t>(other)] = 0; });
          if (arrived == 0)
            warp.report(Check::barrier, step, static_cast<int>(lane),
                        "waits at the cluster's barrier without arriving");
          else
            warp.cta.waitFor(warp, Cta::clusterBarrier, arrived - 1);
        },
        {}, detail);
}

static void decodeBarrier(Decoder &d, bool aligned) {
  if (d.take("warp")) { // lanes of a warp run in lockstep; only their happens-before relation changes
    d.take("sync");
    d.expectCount(1, 1);
    const uint32_t members = d.source(0, Type::b32);
    d.emit([](Warp &warp, const Step &) {
       if (warp.cta.shadow)
         warp.cta.shadow->order.joinLanes(warp.index, warp.exec);
     }).members = members;
    return;
  }
  if (d.take("cluster"))
    return decodeClusterBarrier(d);
  d.take("cta");
  const int kind = d.takeOne({"sync", "arrive", "red"});
  if (kind == 2)
    return decodeReduction(d, aligned);
  aligned |= d.take("aligned");
  if (kind < 0)
    d.wrong("'.sync', '.arrive' or '.red'");
  d.expectCount(kind == 1 ? 2 : 1, 2); // who arrives cannot wait for as many as there are
  emitBarrier(d, 0, d.count(), (kind == 1 ? uint64_t{onlyArrives} : 0) | (aligned ? uint64_t{isAligned} : 0));
}

bool takeScope(Decoder &d) {
  const int scope = d.takeOne({"cta", "cluster", "gpu", "sys", "gl"});
  return scope == 0 || scope == 1;
}

template <bool inBlock> static void runFence(Warp &warp, const Step &) {
  if (warp.cta.shadow)
    warp.cta.shadow->order.fence(warp.index, warp.exec, inBlock);
}

static void decodeFence(Decoder &d) {
  if (d.take("proxy")) {
    if (d.take("tensormap::generic"))
      return decodeTensorMapFence(d);
    d.expectCount(0, 0);
    if (d.take("alias"))
      return;
    if (d.take("async::generic")) {
      if (d.takeOne({"acquire", "release"}) < 0 ||
          d.takeOne({"sync_restrict::shared::cluster", "sync_restrict::shared::cta"}) < 0 || !d.take("cluster"))
        d.unsupported();
    } else if (d.take("async")) {
      d.takeOne({"global", "shared::cta", "shared::cluster"});
    } else {
      d.unsupported();
    }
    d.emit([](Warp &warp, const Step &) {
      if (warp.cta.shadow)
        warp.cta.shadow->order.proxyFence(warp.index);
    });
    return;
  }
  d.expectCount(0, 0);
  const bool initialises = d.take("mbarrier_init");
  if (d.takeOne({"sc", "acq_rel", "acquire", "release"}) >= 0)
    d.takeOne({"sync_restrict::shared::cluster", "sync_restrict::shared::cta"});
  d.emit(takeScope(d) ? runFence<true> : runFence<false>);
  if (initialises)
    d.emit([](Warp &warp, const Step &) {
      if (warp.cta.shadow)
        warp.cta.mbarriers.fenceInits(warp.cta.shadow->order.firstAgent() + static_cast<uint32_t>(warp.index));
    });
}

void addBarriers(InstructionTable &table) {
  table["bar"] = [](Decoder &d) { decodeBarrier(d, true); };
  table["barrier"] = [](Decoder &d) { decodeBarrier(d, false); };
  table["membar"] = decodeFence;
  table["fence"] = decodeFence;
}

} // namespace kiln::simulator
