// The state machine of mbarrier objects.

#include "runtime/simulator/Mbarriers.h"

#include "runtime/simulator/Access.h"
#include "runtime/simulator/BulkCopies.h"
#include "runtime/simulator/Cta.h"
#include "runtime/simulator/Lanes.h"
#include "runtime/simulator/Shadow.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <fmt/format.h>
#include <utility>

namespace kiln::simulator {

static constexpr uint32_t objectBytes = 8;

Mbarriers::Object *Mbarriers::find(uint32_t place) {
  const auto at = objects.find(place);
  return at == objects.end() || !at->second.live ? nullptr : &at->second;
}

const char *Mbarriers::absence(uint32_t place) const {
  return objects.contains(place) ? "which has been invalidated" : "where none has been made";
}

std::string Mbarriers::init(uint32_t place, int64_t count) {
  std::string fault;
  if (count < 1 || count > maxCount)
    fault = fmt::format("expected a count of 1 to {} arrivals, but got {}", maxCount, count);
  else if (const std::optional<uint32_t> other = overlapping(place, objectBytes))
    fault = fmt::format("makes an mbarrier at {}, but there is one at {} that has not been invalidated", place, *other);
  Object &object = objects[place];
  live += !object.live;
  object = {};
  object.expected = object.pending = count;
  object.live = true;
  first = std::min<uint64_t>(first, place);
  last = std::max<uint64_t>(last, place);
  return fault;
}

std::string Mbarriers::invalidate(uint32_t place) {
  Object *object = find(place);
  if (!object)
    return fmt::format("invalidates an mbarrier at {}, {}", place, absence(place));
  object->live = false;
  --live;
  return {};
}

void Mbarriers::fenceInits(uint32_t agent) {
  for (auto &[place, object] : objects)
    object.madeFenced |= object.made.agent == agent;
}

void Mbarriers::endIfDue(Object &object) {
  if (object.pending != 0 || object.transactions != 0)
    return;
  object.pending = object.expected;
  ++object.phase;
  object.came = 0;
  object.ended = std::move(object.clock);
  object.clock.clear();
  ++ends;
}

std::string Mbarriers::arrive(Object &object, int64_t count, bool drops) {
  std::string fault;
  if (count < 1 || count > maxCount)
    fault = fmt::format("expected a count of 1 to {} arrivals, but got {}", maxCount, count);
  else if (count > object.pending)
    fault =
        fmt::format("arrives {} times, but only {} of {} arrivals are pending", count, object.pending, object.expected);
  else if (drops && count > object.expected)
    fault = fmt::format("drops {} arrivals, but a phase has {}", count, object.expected);
  object.pending -= std::clamp<int64_t>(count, 0, object.pending);
  if (drops)
    object.expected -= std::clamp<int64_t>(count, 0, object.expected);
  return fault;
}

std::string Mbarriers::expect(Object &object, int64_t bytes) {
  object.transactions += bytes;
  if (std::abs(object.transactions) <= maxCount)
    return {};
  const int64_t sum = object.transactions;
  object.transactions = std::clamp(sum, -maxCount, maxCount);
  return fmt::format("expected a tx-count from -{} to {}, but got {}", maxCount, maxCount, sum);
}

std::optional<uint32_t> Mbarriers::overlapping(uint32_t place, uint32_t bytes) const {
  auto at = objects.lower_bound(place < objectBytes ? 0 : place - objectBytes + 1);
  for (; at != objects.end() && at->first < place + bytes; ++at)
    if (at->second.live)
      return at->first;
  return std::nullopt;
}

// --- Instructions ---------------------------------------------------------------------------------------------------
//
// mbarrier.init, inval, arrive, arrive_drop, expect_tx, complete_tx, test_wait, try_wait, pending_count, and
// cp.async.mbarrier.arrive.
//
// try_wait suspends its path until the phase ends, or until nothing else can proceed; then it times out, as hardware
// does. Lanes act in lane order.

using ptx::Operand;
using ptx::Space;
using ptx::Type;

/// Calls `visit(lane, place)` for each executing lane with a valid address of an mbarrier.
template <class Visit> static void forPlaces(Warp &warp, const Step &step, AccessKind kind, Visit visit) {
  const AccessShape shape = AccessShape::unpack(step.target);
  const LanePointers pointers = resolve(warp, step, shape.space, addressesOf(warp, step, shape), 8, kind);
  for (int lane = 0; lane < lanesOfWarp; ++lane) {
    if (!(pointers.valid >> lane & 1))
      continue;
    if (const auto place = sharedPlace(warp, pointers.at[static_cast<size_t>(lane)]))
      visit(lane, *place);
    else
      warp.report(Check::mbarrier, step, lane, "expected an mbarrier in shared memory, but got an address elsewhere");
  }
}

/// As above, with the object. A lane without an object is reported; `does` names its operation.
template <class Visit> static void forObjects(Warp &warp, const Step &step, const char *does, Visit visit) {
  forPlaces(warp, step, AccessKind::mbarrier, [&](int lane, uint32_t place) {
    if (Mbarriers::Object *object = warp.cta.mbarriers.find(place))
      visit(lane, place, *object);
    else
      warp.report(
          Check::mbarrier, step, lane,
          fmt::format("{} an mbarrier at {}, {}", does, warp.cta.placeText(place), warp.cta.mbarriers.absence(place)));
  });
}

static void reportFault(Warp &warp, const Step &step, int lane, uint32_t place, const std::string &fault) {
  if (!fault.empty())
    warp.report(Check::mbarrier, step, lane, fmt::format("{} (mbarrier at {})", fault, warp.cta.placeText(place)));
}

static uint32_t operandOf(Warp &warp, const Step &step, int lane) { return warp.reg<uint32_t>(step.slots[2])[lane]; }

// --- Initialisation and arrivals -----------------------------------------------------------------------------------

static void runInit(Warp &warp, const Step &step) {
  forPlaces(warp, step, AccessKind::mbarrierWrite, [&](int lane, uint32_t place) {
    reportFault(warp, step, lane, place, warp.cta.mbarriers.init(place, operandOf(warp, step, lane)));
    if (const Shadow *shadow = warp.cta.shadow.get())
      warp.cta.mbarriers.find(place)->made = {shadow->order.firstAgent() + static_cast<uint32_t>(warp.index),
                                              shadow->order.stampOf(warp.index)};
  });
}

static void runInvalidate(Warp &warp, const Step &step) {
  forPlaces(warp, step, AccessKind::mbarrierWrite, [&](int lane, uint32_t place) {
    reportFault(warp, step, lane, place, warp.cta.mbarriers.invalidate(place));
  });
}

enum ArriveFlag : uint32_t { drops = 1, noComplete = 2, expects = 4, releases = 8 };

/// slots: 1 state or none, 2 arrivals, bytes or none; list: flags.
static void runArrive(Warp &warp, const Step &step) {
  const uint32_t flags = warp.list(step)[0];
  Mbarriers &mbarriers = warp.cta.mbarriers;
  forObjects(warp, step, "arrives at", [&](int lane, uint32_t place, Mbarriers::Object &object) {
    const uint64_t state = object.state();
    if (warp.cta.shadow && flags & releases)
      warp.cta.shadow->order.release(warp.index, object.clock);
    if (flags & expects)
      reportFault(warp, step, lane, place, mbarriers.expect(object, operandOf(warp, step, lane)));
    const int64_t count = step.slots[2] == Step::none || flags & expects ? 1 : operandOf(warp, step, lane);
    reportFault(warp, step, lane, place, mbarriers.arrive(object, count, flags & drops));
    object.came |= 1u << warp.index;
    if (flags & noComplete && object.pending == 0 && object.transactions == 0)
      reportFault(warp, step, lane, place, "ends the phase, which '.noComplete' promises not to do");
    mbarriers.endIfDue(object);
    if (step.slots[1] != Step::none)
      warp.reg<uint64_t>(step.slots[1])[lane] = state;
  });
}

template <bool Completes> static void runTransactions(Warp &warp, const Step &step) {
  Mbarriers &mbarriers = warp.cta.mbarriers;
  const char *does = Completes ? "completes bytes at" : "expects bytes at";
  forObjects(warp, step, does, [&](int lane, uint32_t place, Mbarriers::Object &object) {
    const int64_t bytes = operandOf(warp, step, lane);
    reportFault(warp, step, lane, place,
                Completes ? mbarriers.complete(object, bytes) : mbarriers.expect(object, bytes));
    if (Completes)
      mbarriers.endIfDue(object);
  });
}

// --- Waiting -------------------------------------------------------------------------------------------------------

enum WaitFlag : uint32_t { byParity = 1, suspends = 2, acquires = 4 };

/// Whether a lane's phase has ended. Reports an invalid parity, and a phase that is neither the current nor the
/// previous one.
static bool hasEnded(Warp &warp, const Step &step, int lane, uint32_t place, const Mbarriers::Object &object) {
  if (warp.list(step)[0] & byParity) {
    const uint32_t parity = operandOf(warp, step, lane);
    if (parity > 1)
      reportFault(warp, step, lane, place, fmt::format("expected a parity of 0 or 1, but got {}", parity));
    return (object.phase & 1) != (parity & 1);
  }
  const uint64_t phase = Mbarriers::Object::phaseOf(warp.reg<uint64_t>(step.slots[2])[lane]);
  if (phase > object.phase)
    reportFault(warp, step, lane, place, "waits with a state that is not of this mbarrier");
  else if (object.phase > phase + 1)
    reportFault(warp, step, lane, place,
                fmt::format("waits for the end of phase {}, but phase {} has ended, too", phase, phase + 1));
  return object.phase > phase;
}

/// slots: 1 predicate, 2 state or parity; list: flags.
static void runWait(Warp &warp, const Step &step) {
  const Wait woken = std::exchange(warp.path.woken, {});
  const bool again = woken.kind == Wait::Kind::mbarrier;
  Mask ended = warp.exec, open = 0; // a lane without an mbarrier must not wait forever
  std::optional<uint32_t> common;   // the object that all waiting lanes wait at
  uint64_t phase = 0;
  bool uniform = true;
  forObjects(warp, step, "waits at", [&](int lane, uint32_t place, Mbarriers::Object &object) {
    bool has = false;
    if (again && woken.index == place && object.phase > woken.phase) {
      has = true;
      if (object.phase > woken.phase + 1)
        reportFault(warp, step, lane, place,
                    fmt::format("waits for the end of phase {}, but phase {} has ended, too, before it has noticed",
                                woken.phase, woken.phase + 1));
    } else {
      has = hasEnded(warp, step, lane, place, object);
    }
    if (has) {
      if (warp.cta.shadow && warp.list(step)[0] & acquires)
        warp.cta.shadow->order.acquire(warp.index, Mask{1} << lane, object.ended);
      return;
    }
    open |= Mask{1} << lane;
    uniform &= !common || *common == place;
    common = place;
    phase = object.phase;
  });
  ended &= ~open;
  const Wait wait = {
      .kind = Wait::Kind::mbarrier, .index = common.value_or(0), .phase = phase, .round = warp.cta.wakings()};
  if (open && !ended && uniform && !again && warp.list(step)[0] & suspends)
    return warp.waitFor(wait);
  warp.setPredicate(step.slots[1], ended);
  if (open)
    warp.poll(wait);
}

// --- Arrivals after copies -----------------------------------------------------------------------------------------

/// list: 1 for .noinc.
static void runCopyArrival(Warp &warp, const Step &step) {
  const bool counts = warp.list(step)[0] == 0;
  forObjects(warp, step, "arrives at", [&](int lane, uint32_t place, Mbarriers::Object &object) {
    if (counts) // compensates for the later arrival
      ++object.pending;
    BulkOperation operation;
    operation.completion = BulkOperation::Completion::run;
    operation.warp = warp.index;
    operation.lane = lane;
    operation.place = warp.place(step);
    Clock clock; // of the thread that the copies belong to
    if (warp.cta.shadow)
      warp.cta.shadow->order.release(warp.index, clock);
    operation.run = [&warp, place, lane, clock, where = operation.place, before = warp.asyncCopies.issued(),
                     engines = warp.asyncCopies.assign(static_cast<size_t>(lane), warp.cta.engineOf(place))] {
      warp.asyncCopies.landFirst(warp, Mask{1} << lane, before);
      warp.cta.arriveAfterCopies(place, where, clock, engines);
    };
    warp.cta.bulk.issue(warp, step, std::move(operation));
  });
}

static void takeB64(Decoder &d) {
  if (d.type() != Type::b64)
    d.wrong("'.b64'");
}

void decodeCopyArrival(Decoder &d) {
  if (!d.take("arrive"))
    d.unsupported();
  const bool noinc = d.take("noinc");
  const Space space = d.space();
  takeB64(d);
  d.expectCount(1, 1);
  AccessShape shape;
  const Decoder::Address address = d.address(d.operand(0), space);
  Step &step = d.emit(runCopyArrival);
  setAddress(step, shape, address);
  d.giveList(step, {noinc});
}

// --- Decoding ------------------------------------------------------------------------------------------------------

/// Emits a step with the address of operand `at`, and the following operand as `.operand`, if one is allowed.
static Step &emitAt(Decoder &d, Handler handler, Space space, size_t at, Type operand, uint32_t flags) {
  AccessShape shape;
  const Decoder::Address address = d.address(d.operand(at), space);
  const uint32_t value = d.count() > at + 1 ? d.source(at + 1, operand) : Step::none;
  Step &step = d.emit(handler);
  setAddress(step, shape, address);
  step.slots[2] = value;
  d.giveList(step, {flags});
  return step;
}

static void decodeArrive(Decoder &d, bool isDrop, bool isRelaxed) {
  const bool expectsBytes = d.take("expect_tx"), incomplete = d.take("noComplete");
  const Space space = d.space();
  takeB64(d);
  d.expectCount(expectsBytes || incomplete ? 3 : 2, 3);
  const Operand &state = d.operand(0);
  const uint32_t result = state.kind == Operand::Kind::sink ? Step::none : d.result(0, Type::b64);
  const uint32_t flags = (isRelaxed ? 0 : uint32_t{releases}) | (isDrop ? uint32_t{drops} : 0) |
                         (incomplete ? uint32_t{noComplete} : 0) | (expectsBytes ? uint32_t{expects} : 0);
  emitAt(d, runArrive, space, 1, Type::u32, flags).slots[1] = result;
}

static void decodeWait(Decoder &d, bool isTry, bool isRelaxed) {
  const bool parity = d.take("parity");
  const Space space = d.space();
  takeB64(d);
  d.expectCount(3, isTry ? 4 : 3);
  if (d.count() == 4) // the time limit
    d.source(3, Type::u32);
  const uint32_t result = d.result(0, Type::pred);
  emitAt(d, runWait, space, 1, parity ? Type::u32 : Type::b64,
         (parity ? uint32_t{byParity} : 0) | (isRelaxed ? 0 : uint32_t{acquires}) | (isTry ? uint32_t{suspends} : 0))
      .slots[1] = result;
}

static void decodePlain(Decoder &d, Handler handler, size_t operands) {
  const Space space = d.space();
  takeB64(d);
  d.expectCount(operands, operands);
  emitAt(d, handler, space, 0, Type::u32, 0);
}

static void decodeMbarrier(Decoder &d) {
  const int operation = d.takeOne(
      {"init", "inval", "arrive", "arrive_drop", "expect_tx", "complete_tx", "test_wait", "try_wait", "pending_count"});
  const bool arrives = operation == 2 || operation == 3, tests = operation == 6 || operation == 7;
  bool isRelaxed = false;
  if (arrives || tests || operation == 4 || operation == 5) {
    isRelaxed = d.takeOne({arrives ? "release" : "acquire", "relaxed"}) == 1;
    d.takeOne({"cta", "cluster"});
  }
  switch (operation) {
  case 0:
    return decodePlain(d, runInit, 2);
  case 1:
    return decodePlain(d, runInvalidate, 1);
  case 2:
  case 3:
    return decodeArrive(d, operation == 3, isRelaxed);
  case 4:
    return decodePlain(d, runTransactions<false>, 2);
  case 5:
    return decodePlain(d, runTransactions<true>, 2);
  case 6:
  case 7:
    return decodeWait(d, operation == 7, isRelaxed);
  case 8:
    takeB64(d);
    d.expectCount(2, 2);
    d.emit(elementwise<uint32_t, uint64_t>(
               [](uint64_t state) { return static_cast<uint32_t>(Mbarriers::Object::pendingOf(state)); }),
           {d.result(0, Type::u32), d.source(1, Type::b64)});
    return;
  default:
    d.unsupported();
  }
}

void addMbarriers(InstructionTable &table) { table["mbarrier"] = decodeMbarrier; }

} // namespace kiln::simulator
