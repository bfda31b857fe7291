// 32 lanes that run in lockstep, and the programs' state round them.
//
// Where lanes part, each side becomes a *path* with its own position, and a *join* waits where they meet again (the
// branch's immediate post-dominator). One path runs at a time; when it has arrived, waits at a barrier or has had its
// turn, another one does, so that a lane may wait for another lane of its warp. A call is a join at the return address.
//
// Lanes that have arrived at a join wait there for a path that spins, however long: whom it waits for may be elsewhere.
// Only when nothing in the launch can move are they let go, since one of them may be what it waits for. From then on
// they and those behind them wait for each other at instructions that they must do together.

#pragma once

#include "runtime/simulator/AsyncCopies.h"
#include "runtime/simulator/Findings.h"
#include "runtime/simulator/Memory.h"
#include "runtime/simulator/Program.h"
#include "runtime/simulator/WgmmaRules.h"

namespace kiln::simulator {

class Cta;

/// What a barrier's reduction counts: lanes whose predicate held, and the others.
struct Tally {
  int held = 0, lacked = 0;
};

/// What a path waits for before it goes on.
struct Wait {
  enum class Kind : uint8_t { none, barrier, mbarrier, bulkGroups, registers, lanes };
  Kind kind = Kind::none;
  bool onlyReads = false; // bulkGroups: until the sources have been read
  uint32_t index = 0;     // of a barrier; an mbarrier's place in shared memory; groups that may be pending; registers
  uint64_t phase = 0;     // that ends: of a barrier or mbarrier
  uint64_t round = 0;     // mbarrier: wakings without a reason, when it began to wait
  Mask lanes = 0;         // bulkGroups: whose groups; lanes: those that are to come
  Tally tally;            // barrier: of its reduction, when the phase has ended

  /// Whether both wait for the same barrier, mbarrier, or kind of thing.
  bool isLike(const Wait &other) const { return kind == other.kind && (kind > Kind::mbarrier || index == other.index); }
};

/// How a path goes round a loop in which it does nothing that others notice.
struct Spin {
  int64_t rounds = 0;
  uint64_t changes = 0; // Warp::changes when they began
  int pc = -1;          // of the branch back at which the state was kept
  int looks = 0;        // at the state, that are left
  uint64_t number = 0;  // of the state
  uint64_t moment = 0;  // of the launch when it was kept
};

/// Lanes at one position.
struct Path {
  int pc = 0;
  Mask mask = 0;
  int code = 0;
  uint32_t frame = 0; // where the registers of the function begin, in bytes
  uint32_t local = 0; // where its local memory begins, in bytes of each lane
  int join = -1;      // where it goes when it arrives
  int64_t steps = 0;  // without coming anywhere
  Spin spin;
  uint64_t stuckAt = 0; // 1 + the moment of the launch since which it has done the same again and again; 0: it has not
  Wait wait;            // what it waits for
  Wait woken;           // what it waited for before it went on
  Wait asked;           // what it has asked for in vain, at the end of its turn
};

/// Where paths meet.
struct Join {
  int pc = 0; // of the step at which they meet, or of the step after a call
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
  /// Runs until all lanes have left, every path waits, its turn is ended, or about `budget` steps are done.
  void run(int64_t budget);
  int64_t stepsDone() const { return steps; }
  /// Whether it would do another step: it has not ended, and waits for nothing.
  bool canGoOn() const { return !finished() && !waiting(); }
  /// Where the step lies that it did last.
  const ptx::Place &lastPlace() const { return placeBefore(path.mask || paths.empty() ? path : paths.back()); }
  bool finished() const { return alive == 0; }
  /// Whether every path waits for something that has not come.
  bool waiting() const;
  /// Whether it can do nothing but wait or ask again.
  bool idle() const;
  /// Whether a path asks again and again what memory holds, which nobody has changed since.
  bool isStuck(const Path &path) const;
  /// Calls `visit(path)` for each path that does not run now.
  template <class Visit> void forEachPath(Visit visit) const {
    for (const Path &other : paths)
      visit(other);
  }

  // --- What handlers use -------------------------------------------------------------------------------------------
  /// The lanes that execute the step: those of the path whose guard holds.
  Mask exec = 0;
  Path path; // the one that runs
  Cta &cta;
  const Program &program;
  const int index; // in the CTA
  Mask alive = 0;  // lanes that have not left
  Mask started = 0;
  Allocation recent, older; // the allocations that were found last, the last one first
  AsyncCopies asyncCopies;
  WgmmaRules wgmmaRules;
  int registersOfLane = 0;                           // that setmaxnreg has left it; 0: as at the launch
  std::array<uint64_t, lanesOfWarp> clusterPhases{}; // of the cluster's barrier at which a lane has arrived, plus 1

  /// What a watched step would run.
  const Code::Watched &watched(const Step &step) const {
    return code->watched[static_cast<size_t>(&step - code->steps.data())];
  }
  const Code::CallSite &callSite(const Step &step) const { return code->callSites[static_cast<size_t>(step.target)]; }
  template <class Word> Word *reg(uint32_t slot) { return reinterpret_cast<Word *>(frame + slot); }
  Mask &predicate(uint32_t slot) { return *reinterpret_cast<Mask *>(frame + slot); }
  const uint32_t *list(const Step &step) const { return code->lists.data() + step.list; }
  const ptx::Place &place(const Step &step) const {
    return code->places[static_cast<size_t>(&step - code->steps.data())];
  }
  /// Where the step lies that a path waits at, or asked at.
  const ptx::Place &placeOf(const Path &waiting) const {
    const bool runsAgain = waiting.wait.kind != Wait::Kind::none && waiting.wait.kind != Wait::Kind::barrier;
    return placeBefore(waiting, runsAgain ? 0 : 1);
  }
  /// Local memory of a lane.
  char *localOf(int lane) { return localMemory.data() + static_cast<size_t>(lane) * localStride; }
  /// For each of its bytes whether anything was written to it.
  char *localWritten(int lane) { return localOf(lane + lanesOfWarp); }
  uint32_t localBytes() const { return localStride; }
  /// Makes local memory so large that a function which is called has it up to `bytes` beyond the caller's; pointers
  /// into it change. Lanes whose calls lie too deep are reported, and leave.
  void makeRoomForCall(const Step &step, uint32_t bytes);
  /// Makes local memory at least so large for each lane; pointers into it change.
  void growLocal(uint32_t bytes);

  void branch(const Step &step);
  void branchIndexed(const Step &step);
  /// Each executing lane goes into the function of its own, whose local memory begins `distance` bytes behind the
  /// caller's; all meet again when they have returned.
  void call(const std::array<int, lanesOfWarp> &targets, uint32_t distance);
  void returnLanes();
  void exitLanes();
  void arriveAtJoin(const Step &step);
  /// The executing lanes wait at a barrier of the CTA.
  void waitAtBarrier(int barrier, uint64_t phase);
  /// Gives those who wait for the end of a barrier's phase what its reduction has counted.
  void giveTally(int barrier, uint64_t phase, const Tally &tally);
  /// The path waits, and then runs the step again.
  void waitFor(const Wait &wait);
  /// Ends the warp's turn.
  void endTurn();
  /// The path has asked in vain whether something has come, and ends its turn.
  void poll(const Wait &asked);
  /// Lanes that wait at a join for a path that cannot go on do so without it: one may be what it waits for. False
  /// without any.
  bool letGoAtJoins();
  /// Lanes that have been let go, and wait for others at an instruction that they must do together, do it alone.
  bool letGoAlone();
  /// Something has changed that other warps can see.
  void noteChange() { ++changes; }
  /// Reports what a lane did at the step.
  void report(Check check, const Step &step, int lane, const std::string &text);
  /// Thread number in the CTA.
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
  int newJoin(Join join);
  void enterFrame(int codeIndex);
  uint32_t freeFrame() const;

  const Code *code = nullptr;
  char *frame = nullptr;
  /// Frames begin at a line of the caches, and so do their registers: an access to one that did not would be two.
  struct alignas(64) Line {
    char bytes[64];
  };
  std::vector<Line> registers;
  std::vector<char> localMemory;
  uint32_t localStride = 0;
  std::vector<Path> paths; // that do not run now
  std::vector<Join> joins;
  int64_t steps = 0;
  uint64_t changes = 0;        // that others can see
  std::vector<char> keptState; // of a path that goes round
  uint64_t keptNumber = 0;
  bool pathEnded = false; // the running path has arrived, left or begun to wait
  bool turnEnded = false; // before its steps were up
  bool isLoose = false;   // lanes have been let go that may be ahead of others
};

} // namespace kiln::simulator
