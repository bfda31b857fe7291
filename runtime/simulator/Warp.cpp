// Paths and joins.

#include "runtime/simulator/Warp.h"

#include "runtime/simulator/Cta.h"
#include "runtime/simulator/Metrics.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <utility>

namespace kiln::simulator {

/// The maximum size of the registers of a warp's active functions; a recursion of depth 1000 takes about 10 MB.
static constexpr uint32_t maxFrameBytes = 32 << 20;
/// The maximum number of joins of a warp: nested calls, and branches around them.
static constexpr size_t maxJoins = 8192;

Warp::Warp(Cta &cta, const Program &program, int index, int threads) : cta(cta), program(program), index(index) {
  const int lanes = std::min(lanesOfWarp, threads - index * lanesOfWarp);
  alive = started = lanes == lanesOfWarp ? allLanes : (Mask{1} << lanes) - 1;
  path.mask = alive;
  enterFrame(0);
}

// --- Frames --------------------------------------------------------------------------------------------------------

/// Sets up the running path's frame, with the function's constants.
void Warp::enterFrame(int codeIndex) {
  path.code = codeIndex;
  code = &program.codes[static_cast<size_t>(codeIndex)];
  if (registers.size() * sizeof(Line) < path.frame + code->frameBytes)
    registers.resize((path.frame + code->frameBytes + code->frameBytes / 2) / sizeof(Line) + 1);
  frame = reinterpret_cast<char *>(registers.data()) + path.frame;
  std::copy(code->image.begin(), code->image.end(), frame); // may be empty
  for (const Code::SpecialSlot &special : code->specials)
    cta.fillSpecial(*this, special.special, special.wide, frame + special.slot);
  for (const Code::FrameAddress &address : code->frameAddresses)
    for (int lane = 0; lane < lanesOfWarp; ++lane)
      if (address.wide)
        reinterpret_cast<uint64_t *>(frame + address.slot)[lane] = address.offset + path.local;
      else
        reinterpret_cast<uint32_t *>(frame + address.slot)[lane] = static_cast<uint32_t>(address.offset + path.local);
  growLocal(path.local + code->localBytes);
}

void Warp::growLocal(uint32_t bytes) {
  if (bytes <= localStride)
    return;
  const uint32_t stride = std::max(bytes, localStride + localStride / 2);
  std::vector<char> grown(size_t{2} * stride * lanesOfWarp); // the bytes, then whether they are initialised
  for (int row = 0; row < 2 * lanesOfWarp && localStride; ++row)
    std::memcpy(grown.data() + static_cast<size_t>(row) * stride, localMemoryOf(row), localStride);
  localMemory = std::move(grown);
  localStride = stride;
}

void Warp::makeRoomForCall(const Step &step, uint32_t bytes) {
  if (path.local + int64_t{bytes} > maxLocalBytes || freeFrame() > maxFrameBytes || joins.size() > maxJoins) {
    report(
        Check::bounds, step, std::countr_zero(exec),
        fmt::format("calls lie within each other too deep: {} of them, or beyond {} bytes of local memory a thread or "
                    "{} bytes of registers a warp",
                    maxJoins, maxLocalBytes, maxFrameBytes));
    exitLanes();
    return;
  }
  growLocal(path.local + bytes);
}

/// The first free register for a called function: after those of all functions that paths are in or will return to.
/// Diverged paths may be in different functions.
uint32_t Warp::freeFrame() const {
  const auto end = [&](uint32_t frame, int code) {
    return frame + program.codes[static_cast<size_t>(code)].frameBytes;
  };
  uint32_t free = end(path.frame, path.code);
  for (const Path &other : paths)
    free = std::max(free, end(other.frame, other.code));
  for (const Join &join : joins)
    if (join.used)
      free = std::max(free, end(join.frame, join.code));
  return free;
}

void Warp::resume(const Path &resumed) {
  path = resumed;
  path.woken = path.wait;
  path.wait = {};
  path.asked = {};
  if (std::exchange(path.stuckAt, 0))
    path.spin = {};
  code = &program.codes[static_cast<size_t>(path.code)];
  frame = reinterpret_cast<char *>(registers.data()) + path.frame;
}

// --- Running -------------------------------------------------------------------------------------------------------

/// Steps of a path before another path of its warp gets a turn.
static constexpr int64_t turnOfPath = 2000;
/// Steps after which a path without progress is assumed to wait for a lane at a join, even if no repetition was
/// detected.
static constexpr int64_t longPatience = 1 << 22;

void Warp::run(int64_t budget) {
  int64_t done = 0;
  turnEnded = false;
  const uint64_t before = changes;
  const bool counting = cta.metrics != nullptr;
  while (done < budget && !turnEnded && (path.mask != 0 || next())) {
    pathEnded = false;
    const int64_t begin = done;
    // A busy-waiting path must not block its siblings.
    const int64_t turn = paths.empty() ? budget : std::min<int64_t>(budget, done + turnOfPath);
    while (!pathEnded && done < turn) {
      const Step &step = code->steps[static_cast<size_t>(path.pc)];
      exec = path.mask;
      if (step.plain && !counting) {
        const int count = static_cast<int>(std::min<int64_t>(step.plain, turn - done));
        path.pc += count;
        done += count;
        for (const Step *next = &step, *const end = next + count; next != end; ++next)
          next->run(*this, *next);
        continue;
      }
      if (step.guard != Step::none)
        exec &= step.guardNegated ? ~predicate(step.guard) : predicate(step.guard);
      ++path.pc;
      done += step.counts;
      if (!exec)
        continue;
      if (counting)
        ++cta.metrics->at(path.code, path.pc - 1).instructions;
      if (isLoose && step.members != Step::none && !gather(step))
        continue;
      changes += step.changes;
      step.run(*this, step);
    }
    if (pathEnded || path.mask == 0) {
      path.mask = 0;
      continue;
    }
    path.steps += done - begin;
    if (path.steps >= longPatience) {
      letGo(path.join);
      path.steps = 0;
    }
    if (!paths.empty()) {
      paths.push_back(path);
      path.mask = 0;
    }
  }
  steps += done;
  if (changes != before)
    cta.noteChange();
}

/// Selects the next path that can run; false if there is none.
bool Warp::next() {
  for (size_t i = 0; i < paths.size(); ++i) {
    if (cta.stillWaits(*this, paths[i].wait) || isStuck(paths[i]))
      continue;
    const Path chosen = paths[i];
    paths.erase(paths.begin() + static_cast<std::ptrdiff_t>(i));
    resume(chosen);
    return true;
  }
  return false;
}

bool Warp::isStuck(const Path &path) const { return path.stuckAt && path.stuckAt == cta.moment() + 1; }

bool Warp::waiting() const {
  return !finished() && path.mask == 0 && std::all_of(paths.begin(), paths.end(), [&](const Path &other) {
    return cta.stillWaits(*this, other.wait) || isStuck(other);
  });
}

bool Warp::idle() const {
  return path.mask == 0 && std::all_of(paths.begin(), paths.end(), [&](const Path &other) {
           return other.asked.kind != Wait::Kind::none || cta.stillWaits(*this, other.wait) || isStuck(other);
         });
}

void Warp::waitAtBarrier(int barrier, uint64_t phase) {
  Path waiting = path;
  waiting.mask = exec;
  waiting.wait = {.kind = Wait::Kind::barrier, .index = static_cast<uint32_t>(barrier), .phase = phase};
  paths.push_back(waiting);
  path.mask &= ~exec;
  pathEnded = path.mask == 0;
}

void Warp::giveTally(int barrier, uint64_t phase, const Tally &tally) {
  for (Path &other : paths)
    if (other.wait.kind == Wait::Kind::barrier && other.wait.index == static_cast<uint32_t>(barrier) &&
        other.wait.phase == phase)
      other.wait.tally = tally;
}

void Warp::waitFor(const Wait &wait) {
  Path waiting = path;
  --waiting.pc;
  steps -= code->steps[static_cast<size_t>(waiting.pc)].counts; // it will be executed again
  if (cta.metrics)
    --cta.metrics->at(path.code, waiting.pc).instructions;
  waiting.wait = wait;
  paths.push_back(waiting);
  path.mask = 0;
  pathEnded = true;
}

void Warp::endTurn() {
  paths.push_back(path);
  path.mask = 0;
  pathEnded = turnEnded = true;
}

void Warp::poll(const Wait &asked) {
  endTurn();
  paths.back().asked = asked;
  paths.back().spin = {}; // progress of the block is checked in Cta::goOn
}

// --- Control flow --------------------------------------------------------------------------------------------------

/// A join of lanes of the running path.
int Warp::newJoin(int pc, Mask outstanding, bool isCall) {
  const Join join = {.pc = pc,
                     .isCall = isCall,
                     .outstanding = outstanding,
                     .parent = path.join,
                     .code = path.code,
                     .frame = path.frame,
                     .local = path.local,
                     .used = true};
  for (size_t i = 0; i < joins.size(); ++i)
    if (!joins[i].used) {
      joins[i] = join;
      return static_cast<int>(i);
    }
  joins.push_back(join);
  return static_cast<int>(joins.size()) - 1;
}

void Warp::branch(const Step &step) {
  if (exec == path.mask) {
    const int from = std::exchange(path.pc, step.target);
    if (step.target < from && goesRound(from)) {
      path.stuckAt = path.spin.moment + 1;
      paths.push_back(path);
      path.mask = 0;
      pathEnded = true;
    }
    return;
  }
  // The two sides reconverge at step.join; if a join there exists already, no other is needed.
  const bool sameJoin = step.join < 0 || (path.join >= 0 && !joins[static_cast<size_t>(path.join)].isCall &&
                                          joins[static_cast<size_t>(path.join)].pc == step.join);
  if (!sameJoin)
    path.join = newJoin(step.join, path.mask);
  path.spin = {};
  Path taken = path;
  taken.pc = step.target;
  taken.mask = exec;
  path.mask &= ~exec;
  // A side that begins at the join (a loop's exit, the end of an if) arrives at its first step.
  paths.push_back(taken);
}

void Warp::branchIndexed(const Step &step) {
  const std::vector<int> &targets = code->targets[static_cast<size_t>(step.detail)];
  const auto *selector = reg<uint32_t>(step.slots[0]);
  const int join = step.join < 0 ? path.join : newJoin(step.join, exec);
  const Mask rest = path.mask & ~exec;
  if (rest && join != path.join) // lanes with a false guard also reconverge
    joins[static_cast<size_t>(join)].outstanding |= rest;
  for (size_t target = 0; target < targets.size(); ++target) {
    Mask mask = 0;
    for (int lane = 0; lane < lanesOfWarp; ++lane)
      if (exec >> lane & 1 && std::min<uint64_t>(selector[lane], targets.size() - 1) == target)
        mask |= Mask{1} << lane;
    if (!mask)
      continue;
    Path side = path;
    side.pc = targets[target];
    side.mask = mask;
    side.join = join;
    paths.push_back(side);
  }
  path.mask = rest;
  path.join = join;
  pathEnded = rest == 0;
}

void Warp::arriveAtJoin(const Step &) {
  const int pc = path.pc - 1;
  if (path.join < 0 || joins[static_cast<size_t>(path.join)].isCall || joins[static_cast<size_t>(path.join)].pc != pc)
    return;
  const int join = path.join;
  joins[static_cast<size_t>(join)].arrived |= path.mask;
  joins[static_cast<size_t>(join)].outstanding &= ~path.mask;
  path.mask = 0;
  pathEnded = true;
  release(join);
}

/// If no lane is missing at a join, the arrived lanes continue as one path.
void Warp::release(int index) {
  Join &join = joins[static_cast<size_t>(index)];
  if (join.outstanding)
    return;
  const Join done = join;
  join.used = false;
  if (done.arrived)
    goOnFrom(done);
}

/// The lanes that have arrived at a join continue as a path.
void Warp::goOnFrom(const Join &join) {
  paths.push_back({.pc = join.pc,
                   .mask = join.arrived,
                   .code = join.code,
                   .frame = join.frame,
                   .local = join.local,
                   .join = join.parent});
}

void Warp::call(const std::array<int, lanesOfWarp> &targets, uint32_t distance) {
  const int join = newJoin(path.pc, exec, /*isCall=*/true);
  const Mask rest = path.mask & ~exec;
  if (rest) { // lanes with a false guard pass the call; the others reconverge with them at the next join
    Path other = path;
    other.mask = rest;
    paths.push_back(other);
  }
  const Path caller = path;
  for (Mask left = exec; left;) {
    const int target = targets[static_cast<size_t>(std::countr_zero(left))];
    path = caller;
    path.mask = 0;
    for (int lane = 0; lane < lanesOfWarp; ++lane)
      if (left >> lane & 1 && targets[static_cast<size_t>(lane)] == target)
        path.mask |= Mask{1} << lane;
    left &= ~path.mask;
    path.join = join;
    path.frame = freeFrame();
    path.local += distance;
    path.pc = 0;
    enterFrame(target);
    if (left)
      paths.push_back(path);
  }
}

/// Removes lanes from every join from `join` outwards.
void Warp::leave(Mask lanes, int join) {
  while (join >= 0) {
    const int parent = joins[static_cast<size_t>(join)].parent;
    joins[static_cast<size_t>(join)].outstanding &= ~lanes;
    release(join);
    join = parent;
  }
}

void Warp::returnLanes() {
  int call = path.join;
  // Joins within the function no longer wait for returning lanes.
  std::vector<int> within;
  for (; call >= 0 && !joins[static_cast<size_t>(call)].isCall; call = joins[static_cast<size_t>(call)].parent)
    within.push_back(call);
  if (call < 0)
    return exitLanes();
  const Mask lanes = exec;
  path.mask &= ~lanes;
  pathEnded = path.mask == 0;
  for (const int join : within) {
    joins[static_cast<size_t>(join)].outstanding &= ~lanes;
    release(join);
  }
  joins[static_cast<size_t>(call)].arrived |= lanes;
  joins[static_cast<size_t>(call)].outstanding &= ~lanes;
  release(call);
}

void Warp::exitLanes() {
  const Mask lanes = exec;
  asyncCopies.leave(*this, lanes);
  alive &= ~lanes;
  path.mask &= ~lanes;
  pathEnded = path.mask == 0;
  leave(lanes, path.join);
  cta.lanesLeft(*this);
}

void Warp::report(Check check, const Step &step, int lane, const std::string &text) {
  if (!cta.grid.checks.has(check))
    return;
  const std::array<int, 3> thread = cta.threadCoordinates(threadOf(lane));
  const std::array<int, 3> block = cta.coordinates;
  cta.findings.add(check, place(step),
                   fmt::format("{} (block {},{},{}, thread {},{},{})", text, block[0], block[1], block[2], thread[0],
                               thread[1], thread[2]));
}

} // namespace kiln::simulator
