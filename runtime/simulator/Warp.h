// A warp: 32 lanes in lockstep, with divergence and reconvergence.
//
// At a divergent branch each side becomes a *path* with its own position. A *join* waits where they reconverge, at the
// branch's immediate post-dominator. One path runs at a time. When it has reached its join, waits at a barrier, or has
// had its turn, another path runs. So a lane may wait for another lane of its warp. A call is a join at the return
// address.
//
// Lanes at a join wait for a spinning path as long as anything else in the launch can make progress, because the path
// may wait for that. Then they are released, because the path may wait for one of them. From then on they, and lanes
// after them, wait for each other at instructions that lanes execute together.

#pragma once

#include "runtime/simulator/AsyncCopies.h"
#include "runtime/simulator/Findings.h"
#include "runtime/simulator/Memory.h"
#include "runtime/simulator/Program.h"
#include "runtime/simulator/Warpgroup.h"

namespace kiln::simulator {

class Cta;

/// The counts of a barrier reduction: lanes with a true predicate, and the others.
struct Tally {
  int held = 0, lacked = 0;
};

/// The event that a path waits for.
struct Wait {
  enum class Kind : uint8_t { none, barrier, mbarrier, bulkGroups, registers, lanes };
  Kind kind = Kind::none;
  bool onlyReads = false; // bulkGroups: until the sources have been read
  uint32_t index = 0;     // a barrier; an mbarrier's place in shared memory; allowed pending groups; registers
  uint64_t phase = 0;     // the phase that ends: of a barrier or mbarrier
  uint64_t round = 0;     // mbarrier: wakings without a reason at the begin of the wait
  Mask lanes = 0;         // bulkGroups: owners of the groups; lanes: the expected lanes
  Tally tally;            // barrier: the reduction, when the phase has ended

  /// Whether both wait for one barrier or mbarrier, or for one kind of event.
  bool isLike(const Wait &other) const { return kind == other.kind && (kind > Kind::mbarrier || index == other.index); }
};

/// The state of a path that may be spinning: a loop without changes that others can see.
struct Spin {
  int64_t rounds = 0;
  uint64_t changes = 0; // Warp::changes at the begin
  int pc = -1;          // of the backward branch at which the state was kept
  int looks = 0;        // remaining comparisons of the state
  uint64_t number = 0;  // of the kept state
  uint64_t moment = 0;  // of the launch when the state was kept
};

/// Lanes at one position.
struct Path {
  int pc = 0;
  Mask mask = 0;
  int code = 0;
  uint32_t frame = 0; // begin of the function's registers, in bytes
  uint32_t local = 0; // begin of its local memory, in bytes per lane
  int join = -1;      // the join at which it arrives
  int64_t steps = 0;  // since it last arrived or waited
  Spin spin;
  uint64_t stuckAt = 0; // 1 + the moment of the launch since which it repeats itself; 0: it does not
  Wait wait;            // the event that it waits for
  Wait woken;           // the event that it waited for before
  Wait asked;           // the event that had not occurred when it polled at the end of its turn
};

/// A reconvergence point of paths.
struct Join {
  int pc = 0; // of the step where they reconverge, or of the step after a call
  bool isCall = false;
  Mask outstanding = 0, arrived = 0;
  int parent = -1;
  int code = 0;
  uint32_t frame = 0, local = 0;
  bool used = false;
};

class Warp {
public:
  Warp(Cta &cta, const Program &program, int index, int threads);
  /// Runs until all lanes have exited, every path waits, the turn is ended, or about `budget` steps are done.
  void run(int64_t budget);
  int64_t stepsDone() const { return steps; }
  /// Whether it would run another step: it has not finished and does not wait.
  bool canGoOn() const { return !finished() && !waiting(); }
  /// The place of the last step.
  const ptx::Place &lastPlace() const { return placeBefore(path.mask || paths.empty() ? path : paths.back()); }
  bool finished() const { return alive == 0; }
  /// Whether every path waits for an event that has not come.
  bool waiting() const;
  /// Whether it can only wait or poll.
  bool idle() const;
  /// Whether a path polls memory that has not changed since its last poll.
  bool isStuck(const Path &path) const;
  /// Calls `visit(path)` for each path except the running one.
  template <class Visit> void forEachPath(Visit visit) const {
    for (const Path &other : paths)
      visit(other);
  }

  // --- Loops through barriers (Spinning.cpp) -----------------------------------------------------------------------
  /// Appends the position, the calls, the registers and the local memory of the warp to `state`. False unless all its
  /// lanes wait for this, or have just ended it.
  bool addStateTo(std::vector<char> &state, const Wait &wait, bool hasEndedIt) const;
  /// The lanes, which were together at a barrier, repeat their state since a moment of the launch.
  void repeatFrom(const Wait &wait, uint64_t moment);

  // --- What handlers use -------------------------------------------------------------------------------------------
  /// The lanes that execute the step: lanes of the path with a true guard.
  Mask exec = 0;
  Path path; // the running path
  Cta &cta;
  const Program &program;
  const int index; // in the CTA
  Mask alive = 0;  // lanes that have not exited
  Mask started = 0;
  Allocation recent, older; // the last two allocations found, the latest first
  AsyncCopies asyncCopies;
  WgmmaRules wgmmaRules;
  int registersOfLane = 0; // from setmaxnreg; 0: as at the launch
  std::array<uint64_t, lanesOfWarp>
      clusterPhases{}; // by lane: 1 + the phase of the cluster barrier at which it has arrived

  /// The handler and registers of a watched step.
  const Code::Watched &watched(const Step &step) const {
    return code->watched[static_cast<size_t>(&step - code->steps.data())];
  }
  const Code::CallSite &callSite(const Step &step) const { return code->callSites[static_cast<size_t>(step.target)]; }
  template <class Word> Word *reg(uint32_t slot) { return reinterpret_cast<Word *>(frame + slot); }
  Mask &predicate(uint32_t slot) { return *reinterpret_cast<Mask *>(frame + slot); }
  /// Sets a predicate in the executing lanes.
  void setPredicate(uint32_t slot, Mask value) {
    Mask &result = predicate(slot);
    result = (result & ~exec) | (value & exec);
  }
  const uint32_t *list(const Step &step) const { return code->lists.data() + step.list; }
  const ptx::Place &place(const Step &step) const {
    return code->places[static_cast<size_t>(&step - code->steps.data())];
  }
  /// The place of the step at which a path waits or polls.
  const ptx::Place &placeOf(const Path &waiting) const {
    const bool runsAgain = waiting.wait.kind != Wait::Kind::none && waiting.wait.kind != Wait::Kind::barrier;
    return placeBefore(waiting, runsAgain ? 0 : 1);
  }
  /// The local memory of a lane.
  char *localMemoryOf(int lane) { return localMemory.data() + static_cast<size_t>(lane) * localStride; }
  /// For each byte of local memory whether it was written.
  char *localWritten(int lane) { return localMemoryOf(lane + lanesOfWarp); }
  uint32_t localBytes() const { return localStride; }
  /// Grows local memory so that a called function has it up to `bytes` beyond the caller's. Pointers into it change.
  /// Lanes with too deep calls are reported and exit.
  void makeRoomForCall(const Step &step, uint32_t bytes);
  /// Grows local memory to at least that many bytes per lane. Pointers into it change.
  void growLocal(uint32_t bytes);

  void branch(const Step &step);
  void branchIndexed(const Step &step);
  /// Each executing lane calls its own target, whose local memory begins `distance` bytes after the caller's. All
  /// lanes reconverge after the return.
  void call(const std::array<int, lanesOfWarp> &targets, uint32_t distance);
  void returnLanes();
  void exitLanes();
  void arriveAtJoin(const Step &step);
  /// The executing lanes wait at a barrier of the CTA.
  void waitAtBarrier(int barrier, uint64_t phase);
  /// Gives the result of a barrier reduction to those who wait for the end of the phase.
  void giveTally(int barrier, uint64_t phase, const Tally &tally);
  /// The path waits, and then runs the step again.
  void waitFor(const Wait &wait);
  /// Ends the warp's turn.
  void endTurn();
  /// Ends the turn of a path that has polled without a change.
  void poll(const Wait &asked);
  /// Releases lanes that wait at a join for a path that cannot continue; one of them may be the one that it waits for.
  /// False if there are none.
  bool letGoAtJoins();
  /// Lets released lanes that wait for others at a joint instruction execute it alone.
  bool letGoAlone();
  /// Records a change that other warps can see.
  void noteChange() { ++changes; }
  /// Reports a finding for a lane at the step.
  void report(Check check, const Step &step, int lane, const std::string &text);
  /// The thread number in the CTA.
  int threadOf(int lane) const { return index * lanesOfWarp + lane; }

private:
  const ptx::Place &placeBefore(const Path &of, int steps = 1) const {
    return program.codes[static_cast<size_t>(of.code)].places[static_cast<size_t>(std::max(0, of.pc - steps))];
  }
  bool next();
  void resume(const Path &resumed);
  void release(int join);
  bool letGo(int join);
  bool gather(const Step &step);
  void take(const Path &other);
  bool goesRound(int pc);
  void keepState();
  bool hasKeptState() const;
  void leave(Mask lanes, int join);
  int newJoin(int pc, Mask outstanding, bool isCall = false);
  void goOnFrom(const Join &join);
  void enterFrame(int codeIndex);
  uint32_t freeFrame() const;

  const Code *code = nullptr;
  char *frame = nullptr;
  /// A cache line. Frames and registers begin at one, so that an access touches only one line.
  struct alignas(64) Line {
    char bytes[64];
  };
  std::vector<Line> registers;
  std::vector<char> localMemory;
  uint32_t localStride = 0;
  std::vector<Path> paths; // except the running one
  std::vector<Join> joins;
  int64_t steps = 0;
  uint64_t changes = 0;        // that others can see
  std::vector<char> keptState; // of a spinning path
  uint64_t keptNumber = 0;
  bool pathEnded = false; // the running path has arrived, exited or begun to wait
  bool turnEnded = false; // before its budget was used up
  bool isLoose = false;   // released lanes may be ahead of others
};

} // namespace kiln::simulator
