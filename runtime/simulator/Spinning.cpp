// Busy-waiting paths: how they are detected, which waiting lanes are released for them, and how lanes reconverge.
//
// A path is busy-waiting if it reaches a backward branch again with equal registers and local memory, and its warp has
// changed no visible state meanwhile. It then repeats until another thread changes memory. A counting loop does not
// match, however long it is. The state is saved for a few iterations only, after 64, 128, 256 … iterations, so that
// other loops are not slowed down.

#include "runtime/simulator/Cta.h"

#include <algorithm>
#include <bit>

namespace kiln::simulator {

// --- Detection -----------------------------------------------------------------------------------------------------

static constexpr int64_t firstLook = 64;
/// The number of later passes of the branch that compare the state with the saved one. One pass is not enough: the
/// branch may belong to a loop inside the busy-waiting one.
static constexpr int maxLooks = 8;
/// A warp with more local memory is not checked.
static constexpr size_t maxLocalKept = 1 << 20;

void Warp::keepState() {
  const char *const begin = reinterpret_cast<const char *>(registers.data());
  keptState.assign(begin, begin + path.frame + code->frameBytes);
  keptState.insert(keptState.end(), localMemory.begin(), localMemory.end());
}

bool Warp::hasKeptState() const {
  const size_t bytes = path.frame + code->frameBytes;
  return keptState.size() == bytes + localMemory.size() &&
         std::memcmp(keptState.data(), registers.data(), bytes) == 0 &&
         std::equal(localMemory.begin(), localMemory.end(), keptState.begin() + static_cast<std::ptrdiff_t>(bytes));
}

/// Called at a backward branch. Returns whether the path repeats its state.
bool Warp::goesRound(int pc) {
  Spin &spin = path.spin;
  if (spin.changes != changes)
    spin = {.changes = changes};
  if (++spin.rounds < firstLook || localMemory.size() > maxLocalKept)
    return false;
  if (std::has_single_bit(static_cast<uint64_t>(spin.rounds))) {
    spin.pc = pc;
    spin.looks = maxLooks;
    spin.moment = cta.moment();
    spin.number = ++keptNumber;
    keepState();
    return false;
  }
  return spin.looks > 0 && pc == spin.pc && spin.looks-- > 0 && spin.number == keptNumber && hasKeptState();
}

// --- Detection in loops through barriers -----------------------------------------------------------------------------
//
// A loop with a barrier in each iteration involves all warps of a block: they repeat if the whole block returns to a
// state. The state at the end of a phase is compared, in which all lanes are at one barrier.

bool Warp::addStateTo(std::vector<char> &state, const Wait &wait, bool hasEndedIt) const {
  const bool isHere = hasEndedIt ? paths.empty()
                                 : path.mask == 0 && paths.size() == 1 && paths.front().wait.kind == wait.kind &&
                                       paths.front().wait.index == wait.index && paths.front().wait.phase == wait.phase;
  if (!isHere || localMemory.size() > maxLocalKept)
    return false;
  const Path &only = hasEndedIt ? path : paths.front();
  if (only.mask != alive)
    return false;
  const auto add = [&](const auto *from, size_t bytes) {
    const auto *const begin = reinterpret_cast<const char *>(from);
    state.insert(state.end(), begin, begin + bytes);
  };
  add(&only.pc, sizeof only.pc);
  add(&only.code, sizeof only.code);
  add(&only.frame, sizeof only.frame);
  for (int join = only.join; join >= 0; join = joins[static_cast<size_t>(join)].parent) {
    const Join &each = joins[static_cast<size_t>(join)];
    add(&each.pc, sizeof each.pc); // of a call: where it returns to
    add(&each.code, sizeof each.code);
    add(&each.frame, sizeof each.frame);
  }
  add(registers.data(), only.frame + program.codes[static_cast<size_t>(only.code)].frameBytes);
  add(localMemory.data(), localMemory.size());
  return true;
}

void Warp::repeatFrom(const Wait &wait, uint64_t moment) {
  if (paths.empty()) {
    path.wait = wait; // which has ended
    path.stuckAt = moment + 1;
    endTurn();
  } else {
    paths.front().stuckAt = moment + 1;
  }
}

bool Cta::repeatsAt(const Wait &wait, const Warp &last) {
  if (looks.moment != turnsMoment || looks.barrier != wait.index)
    looks = {.moment = turnsMoment, .barrier = wait.index};
  if (++looks.phases < firstLook)
    return false;
  const bool keeps = std::has_single_bit(static_cast<uint64_t>(looks.phases));
  if (!keeps && looks.left == 0)
    return false;
  std::vector<char> state(sharedMemory, sharedMemory + sharedSize);
  const bool isWhole = std::all_of(warps.begin(), warps.end(), [&](const Warp &warp) {
    return warp.finished() || warp.addStateTo(state, wait, &warp == &last);
  });
  if (keeps) {
    looks.left = isWhole ? maxLooks : 0;
    looks.kept = std::move(state);
    return false;
  }
  --looks.left;
  return isWhole && state == looks.kept;
}

// --- Release -------------------------------------------------------------------------------------------------------

/// Lets the lanes that wait for a path at the nearest join proceed without it.
bool Warp::letGo(int index) {
  for (; index >= 0; index = joins[static_cast<size_t>(index)].parent) {
    Join &join = joins[static_cast<size_t>(index)];
    if (!join.arrived)
      continue;
    goOnFrom(join);
    join.arrived = 0;
    isLoose = true;
    return true;
  }
  return false;
}

bool Warp::letGoAtJoins() {
  for (size_t i = 0; i < paths.size(); ++i)
    if ((paths[i].wait.kind != Wait::Kind::none || isStuck(paths[i])) && letGo(paths[i].join))
      return true;
  return false;
}

bool Warp::letGoAlone() {
  for (Path &other : paths)
    if (other.wait.kind == Wait::Kind::lanes && cta.stillWaits(*this, other.wait)) {
      other.wait.lanes = 0;
      return true;
    }
  return false;
}

// --- Reconvergence -------------------------------------------------------------------------------------------------

/// Merges a path that waits at the running path's instruction into the running path. If the joins of one path include
/// those of the other, the merged path has all of them. Otherwise it has those of the running path.
void Warp::take(const Path &other) {
  const auto parentOf = [&](int join) { return joins[static_cast<size_t>(join)].parent; };
  const auto isOnWay = [&](int join, int from) {
    while (from >= 0 && from != join)
      from = parentOf(from);
    return from == join;
  };
  const bool otherIsDeeper = isOnWay(path.join, other.join);
  const int deeper = otherIsDeeper ? other.join : path.join, outer = otherIsDeeper ? path.join : other.join;
  const Mask joining = otherIsDeeper ? path.mask : other.mask;
  for (int join = deeper; join >= 0 && !isOnWay(join, outer); join = parentOf(join))
    joins[static_cast<size_t>(join)].outstanding |= joining;
  for (int join = outer; join >= 0 && !isOnWay(join, deeper);) {
    const int parent = parentOf(join);
    joins[static_cast<size_t>(join)].outstanding &= ~joining;
    release(join);
    join = parent;
  }
  path.join = deeper;
  path.mask |= other.mask;
}

/// Called before an instruction that lanes execute together. Returns whether all are here; if not, the path waits.
bool Warp::gather(const Step &step) {
  Mask members = allLanes;
  if (step.members != Step::everyLane) {
    members = 0;
    for (int lane = 0; lane < lanesOfWarp; ++lane)
      members |= exec >> lane & 1 ? reg<uint32_t>(step.members)[lane] : 0;
  }
  const int pc = path.pc - 1;
  if (path.woken.kind == Wait::Kind::lanes && path.woken.lanes == 0) {
    path.woken = {};
    return true; // it was released without the others
  }
  for (size_t i = 0; i < paths.size();) {
    const Path other = paths[i];
    if (other.wait.kind != Wait::Kind::lanes || other.pc != pc || other.code != path.code ||
        other.frame != path.frame) {
      ++i;
      continue;
    }
    paths.erase(paths.begin() + static_cast<std::ptrdiff_t>(i));
    take(other);
    i = 0;
  }
  exec = path.mask;
  if (step.guard != Step::none)
    exec &= step.guardNegated ? ~predicate(step.guard) : predicate(step.guard);
  if (path.mask == alive && paths.empty())
    isLoose = false;
  if (const Mask missing = members & alive & ~path.mask) {
    waitFor({.kind = Wait::Kind::lanes, .lanes = missing});
    return false;
  }
  return true;
}

} // namespace kiln::simulator
