// Data exchange within a warp: shfl, vote, match, redux, elect.

#include "runtime/simulator/AtomicOperations.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/format.h>

namespace kiln::simulator {

using ptx::Type;

/// Calls `run(members)` once for each group of executing lanes with equal member masks, with only that group executing.
/// Reports members that do not take part, and lanes that take part without being members.
template <class Run> static void forGroups(Warp &warp, const Step &step, uint32_t slot, Run run) {
  const Mask executing = warp.exec;
  for (Mask left = executing; left;) {
    const auto *masks = warp.reg<uint32_t>(slot);
    const int first = std::countr_zero(left);
    const Mask members = masks[first];
    Mask group = 0;
    for (int lane = first; lane < lanesOfWarp; ++lane)
      group |= static_cast<Mask>(masks[lane] == members) << lane;
    group &= left;
    left &= ~group;
    warp.exec = group;
    if (group & ~members)
      warp.report(Check::shuffle, step, std::countr_zero(group & ~members),
                  fmt::format("lanes {:#x} execute it, but the member mask is {:#x}", group, members));
    else if (const Mask absent = members & warp.alive & ~group)
      warp.report(Check::shuffle, step, std::countr_zero(absent),
                  fmt::format("the member mask {:#x} names lanes that are elsewhere: {:#x}", members, absent));
    if (members & group)
      run(members & group);
  }
  warp.exec = executing;
}

/// A handler that runs `function(warp, step, members)` for each group; slot `memberSlot` holds the member masks.
template <auto function, size_t memberSlot> static void byGroups(Warp &warp, const Step &step) {
  forGroups(warp, step, step.slots[memberSlot], [&](Mask members) { function(warp, step, members); });
}

static void takeSync(Decoder &d) {
  if (!d.take("sync"))
    d.unsupported("only with .sync");
}

enum class Shuffle : uint8_t { up, down, bfly, idx };

/// d[lane] = a[source lane] if the source lane is in the segment that c describes; otherwise a[lane].
static void shuffle(Warp &warp, const Step &step, Mask members) {
  auto *result = warp.reg<uint32_t>(step.slots[0]);
  const auto *b = warp.reg<uint32_t>(step.slots[2]), *c = warp.reg<uint32_t>(step.slots[3]);
  std::array<uint32_t, lanesOfWarp> a;
  std::copy_n(warp.reg<uint32_t>(step.slots[1]), lanesOfWarp, a.begin());
  const auto mode = static_cast<Shuffle>(step.detail);
  Mask inside = 0;
  for (int lane = 0; lane < lanesOfWarp; ++lane) {
    if (!(warp.exec >> lane & 1))
      continue;
    const int amount = static_cast<int>(b[lane] & 31), clamp = static_cast<int>(c[lane] & 31),
              segment = static_cast<int>(c[lane] >> 8 & 31);
    const int most = (lane & segment) | (clamp & ~segment), least = lane & segment;
    int from = lane;
    bool good = false;
    switch (mode) {
    case Shuffle::up:
      from = lane - amount;
      good = from >= most;
      break;
    case Shuffle::down:
      from = lane + amount;
      good = from <= most;
      break;
    case Shuffle::bfly:
      from = lane ^ amount;
      good = from <= most;
      break;
    case Shuffle::idx:
      from = least | (amount & ~segment);
      good = from <= most;
      break;
    }
    if (!good)
      from = lane;
    else if (!(warp.exec >> from & 1))
      warp.report(Check::shuffle, step, lane,
                  fmt::format("reads lane {}, which does not take part (mask {:#x})", from, members));
    result[lane] = a[static_cast<size_t>(from)];
    inside |= static_cast<Mask>(good) << lane;
  }
  if (step.list != 0)
    warp.setPredicate(step.list - 1, inside);
}

static void decodeShfl(Decoder &d) {
  takeSync(d);
  const int mode = d.takeOne({"up", "down", "bfly", "idx"});
  if (mode < 0 || d.type() != Type::b32)
    d.unsupported();
  d.expectCount(5, 5);
  const auto results = d.elements(d.operand(0));
  Step &step = d.emit(byGroups<shuffle, 4>,
                      {d.result(results[0], Type::b32), d.source(1, Type::b32), d.source(2, Type::b32),
                       d.source(3, Type::b32), d.source(4, Type::b32)},
                      static_cast<uint64_t>(mode));
  step.members = step.slots[4];
  if (results.size() == 2) // whether the source lane was in range
    step.list = d.result(results[1], Type::pred) + 1;
}

// --- Votes ---------------------------------------------------------------------------------------------------------

enum class Vote : uint8_t { all, any, uni, ballot };

static void vote(Warp &warp, const Step &step, Mask members) {
  const Mask held = (warp.predicate(step.slots[1]) ^ (step.detail & 16 ? allLanes : 0)) & members;
  const auto mode = static_cast<Vote>(step.detail & 15);
  if (mode == Vote::ballot)
    return setLanes(warp, step.slots[0], held);
  const bool outcome = mode == Vote::all   ? held == members
                       : mode == Vote::any ? held != 0
                                           : held == 0 || held == members;
  warp.setPredicate(step.slots[0], outcome ? allLanes : 0);
}

static void decodeVote(Decoder &d) {
  takeSync(d);
  const int mode = d.takeOne({"all", "any", "uni", "ballot"});
  const Type type = d.type();
  if (mode < 0 || type != (mode == 3 ? Type::b32 : Type::pred))
    d.unsupported();
  d.expectCount(3, 3);
  bool negated = false;
  const uint32_t predicate = d.predicate(d.operand(1), negated);
  Step &step = d.emit(byGroups<vote, 2>, {d.result(0, type), predicate, d.source(2, Type::b32)},
                      static_cast<uint64_t>(mode) | uint64_t{negated} << 4);
  step.members = step.slots[2];
}

/// match.any: the lanes with an equal value; match.all: all lanes if all values are equal, otherwise none.
template <class Word> static void match(Warp &warp, const Step &step, Mask members) {
  std::array<Word, lanesOfWarp> values;
  std::copy_n(warp.reg<Word>(step.slots[1]), lanesOfWarp, values.begin());
  auto *result = warp.reg<uint32_t>(step.slots[0]);
  bool all = true;
  for (size_t lane = 0; lane < lanesOfWarp; ++lane) {
    if (!(members >> lane & 1))
      continue;
    Mask same = 0;
    for (size_t other = 0; other < lanesOfWarp; ++other)
      same |= static_cast<Mask>((members >> other & 1) && values[other] == values[lane]) << other;
    result[lane] = same;
    all &= same == members;
  }
  if (!step.detail)
    return;
  for (size_t lane = 0; lane < lanesOfWarp; ++lane)
    if (members >> lane & 1)
      result[lane] = all ? members : 0;
  if (step.slots[3] != Step::none)
    warp.setPredicate(step.slots[3], all ? allLanes : 0);
}

static void decodeMatch(Decoder &d) {
  const bool all = d.take("all");
  if (!all && !d.take("any"))
    d.wrong("'.all' or '.any'");
  takeSync(d);
  const Type type = d.type();
  d.expectCount(3, 3);
  const auto results = d.elements(d.operand(0));
  if (results.size() == 2 && !all)
    d.wrong("one result");
  Step &step = d.emit(laneBytes(type) == 8 ? byGroups<match<uint64_t>, 2> : byGroups<match<uint32_t>, 2>,
                      {d.result(results[0], Type::b32), d.source(1, type), d.source(2, Type::b32)}, all);
  step.members = step.slots[2];
  if (results.size() == 2)
    step.slots[3] = d.result(results[1], Type::pred);
}

// --- Reductions ----------------------------------------------------------------------------------------------------

/// detail: the operation.
template <class T> static void reduce(Warp &warp, const Step &step, Mask members) {
  const auto *values = warp.reg<uint32_t>(step.slots[1]);
  auto total = static_cast<T>(values[std::countr_zero(members)]);
  for (Mask left = members & (members - 1); left; left &= left - 1)
    total = updated<T>(static_cast<AtomicOperation>(step.detail), total, static_cast<T>(values[std::countr_zero(left)]),
                       T());
  setLanes(warp, step.slots[0], static_cast<uint32_t>(total));
}

/// The minimum or maximum of f32. `detail`: bit 0: the maximum, bit 1: of magnitudes, bit 2: NaN if a value is NaN.
static void reduceFloats(Warp &warp, const Step &step, Mask members) {
  const auto *values = warp.reg<uint32_t>(step.slots[1]);
  float total = std::numeric_limits<float>::quiet_NaN();
  for (Mask left = members; left; left &= left - 1) {
    const float number = std::bit_cast<float>(values[std::countr_zero(left)]);
    const float value = step.detail & 2 ? std::fabs(number) : number;
    total = left == members ? value : extremum(total, value, step.detail & 1, step.detail & 4);
  }
  setLanes(warp, step.slots[0], std::bit_cast<uint32_t>(withOneNaN(total)));
}

static void decodeRedux(Decoder &d) {
  takeSync(d);
  const int operation = d.takeOne({"add", "min", "max", "and", "or", "xor"}); // as of AtomicOperation
  const bool magnitudes = d.take("abs"), nan = d.take("NaN");
  const Type type = d.type();
  if (type == Type::f32 && (operation == 1 || operation == 2)) {
    d.expectTarget(100, 86);
    d.expectCount(3, 3);
    Step &step = d.emit(byGroups<reduceFloats, 2>, {d.result(0, type), d.source(1, type), d.source(2, Type::b32)},
                        uint64_t{operation == 2} | uint64_t{magnitudes} << 1 | uint64_t{nan} << 2);
    step.members = step.slots[2];
    return;
  }
  if (magnitudes || nan)
    d.unsupported();
  if (operation < 0 || (type != Type::s32 && type != Type::u32 && !(type == Type::b32 && operation >= 3)))
    d.unsupported();
  d.expectCount(3, 3);
  Step &step = d.emit(type == Type::s32 ? byGroups<reduce<int32_t>, 2> : byGroups<reduce<uint32_t>, 2>,
                      {d.result(0, type), d.source(1, type), d.source(2, Type::b32)}, static_cast<uint64_t>(operation));
  step.members = step.slots[2];
}

/// One lane of the members: the lowest.
static void elect(Warp &warp, const Step &step, Mask members) {
  const int leader = std::countr_zero(members);
  setLanes(warp, step.slots[0], static_cast<uint32_t>(leader));
  warp.setPredicate(step.slots[1], Mask{1} << leader);
}

static void decodeElect(Decoder &d) {
  takeSync(d);
  d.expectCount(2, 2);
  const auto results = d.elements(d.operand(0));
  if (results.size() != 2 || results[1].kind == ptx::Operand::Kind::sink)
    d.wrong("a lane and a predicate");
  Step &step = d.emit(byGroups<elect, 2>,
                      {d.result(results[0], Type::b32), d.result(results[1], Type::pred), d.source(1, Type::b32)});
  step.members = step.slots[2];
}

void addExchange(InstructionTable &table) {
  table["shfl"] = decodeShfl;
  table["vote"] = decodeVote;
  table["match"] = decodeMatch;
  table["redux"] = decodeRedux;
  table["elect"] = decodeElect;
}

} // namespace kiln::simulator
