// A CTA (thread block): its warps, shared memory and barriers.

#pragma once

#include "runtime/simulator/BulkQueue.h"
#include "runtime/simulator/Causality.h"
#include "runtime/simulator/Mbarriers.h"
#include "runtime/simulator/PlaceNames.h"
#include "runtime/simulator/TensorMap.h"
#include "runtime/simulator/Warp.h"
#include "runtime/simulator/Warpgroup.h"

#include <deque>
#include <mutex>

namespace kiln::simulator {

class Console;
class GlobalShadow;
class Metrics;
class Progress;
class Shadow;

/// Extents of a grid or a block.
using Extents = std::array<int, 3>;

/// State that all CTAs of a launch share.
struct Grid {
  const Program &program;
  Extents grid = {1, 1, 1}, block = {1, 1, 1};
  uint32_t dynamicShared = 0;
  const char *parameters = nullptr;
  const Memory &memory;
  Findings &findings;
  Delivery delivery = Delivery::late;
  uint64_t seed = 0;
  TensorMapChanges &tensorMaps;
  Checks checks = {};
  GlobalShadow *globalShadow = nullptr; // null if no check needs it
  int errorTimes = 0;                   // injected error of approximate instructions
  bool counts = false;                  // whether to count metrics
  Console *console = nullptr;           // for printf
  int64_t maxSteps = 0;                 // maximum steps of a warp; 0: unlimited
  Progress *progress = nullptr;
  const ViewNames *views = nullptr;     // of the kernel's arguments, for findings; null if they are unknown
  mutable std::mutex wideAccesses = {}; // held by strong accesses of more than one host word (Access.cpp)

  int threads() const { return block[0] * block[1] * block[2]; }
  /// A global address in findings, with the element of an argument that is there.
  std::string addressText(uint64_t address) const;
  /// That of an address outside of all memory.
  std::string outsideText(uint64_t address) const;
};

/// An arrival of lanes at a barrier.
struct Arrival {
  int barrier = 0;
  int threads = 0; // number of threads that it is for; 0: all of the CTA
  bool onlyArrives = false;
  bool reduces = false;
  Mask predicate = 0; // the predicate of the reduction
};

class Cta {
public:
  Cta(const Grid &grid, const Extents &coordinates);
  ~Cta();

  /// Gives every warp a turn of `budget` steps, at a moment of the launch that was read before (Progress.h). False if
  /// all warps have finished. Throws Error if a warp exceeds the maximum number of steps.
  bool run(int64_t budget, bool reversed, uint64_t now);
  /// The state after a turn. goesOn: the CTA continues, perhaps with delayed work. stuck: from the turn's moment until
  /// another CTA changes memory. hopeless: it can never continue.
  enum class Outlook : uint8_t { goesOn, stuck, hopeless };
  Outlook goOn();
  /// Remedies if nothing in the launch can move; they return whether lanes were released (Warp.h).
  bool letGoAtJoins();
  bool letGoAlone();
  /// Reports the waiting lanes and the events that they wait for.
  void reportDeadlock();
  /// Completes the pending work after all threads have exited.
  void finish() { bulk.finish(); }

  char *shared() { return sharedMemory; }
  uint32_t sharedBytes() const { return sharedSize; }
  const Grid &grid;
  const Extents coordinates;
  Findings &findings;
  std::unique_ptr<Shadow> shadow; // null if no check needs it
  Metrics *metrics = nullptr;     // null if nothing is counted
  size_t thread = 0;              // the host thread that runs the CTA

  /// Records a change that other CTAs, or other warps of this one, can see.
  void noteChange();
  /// The moment of the launch of the present turn: one for all questions about the turn.
  uint64_t moment() const { return turnsMoment; }

  /// Writes the 32 lanes of a special register, 8 bytes each if `wide`, else 4.
  void fillSpecial(const Warp &warp, int special, bool wide, char *to) const;
  Extents threadCoordinates(int thread) const;

  // --- Barriers ----------------------------------------------------------------------------------------------------
  static constexpr int barriers = 16, clusterBarrier = barriers;
  uint64_t phaseOf(int barrier) const { return states[static_cast<size_t>(barrier)].phase; }
  /// The executing lanes of a warp arrive, and wait unless they only arrive. The result of a reduction is in
  /// Path::woken when they continue.
  void arrive(Warp &warp, const Step &step, const Arrival &arrival);
  /// Lanes that have arrived in a phase wait for its end.
  void waitFor(Warp &warp, int barrier, uint64_t phase);
  /// Exited threads count as arrived.
  void lanesLeft(const Warp &warp);
  /// Whether a path of a warp must still wait.
  bool stillWaits(const Warp &warp, const Wait &wait) const;
  /// How often all waiters for mbarriers have been woken because nothing else could continue.
  uint64_t wakings() const { return round; }

  // --- Asynchronous units ------------------------------------------------------------------------------------------
  mutable Mbarriers mbarriers;
  BulkQueue bulk{*this};
  /// The versions of tensor maps that its threads have acquired, by address.
  std::map<uint64_t, int64_t> acquiredMaps;
  /// A thread's copies have landed, and it arrives at an mbarrier after them.
  void arriveAfterCopies(uint32_t mbarrier, const ptx::Place &place, const Clock &clock,
                         const std::vector<int> &engines);
  /// The agent for copies that complete at an mbarrier.
  int engineOf(uint32_t mbarrier) const;
  /// Reports a finding without a thread.
  void report(Check check, const ptx::Place &place, const std::string &text);
  /// A place in shared memory with its name: "128 ('full')".
  std::string placeText(uint32_t place) const { return std::to_string(place) + grid.program.sharedNames.at(place); }
  /// Bytes that an mbarrier expects have arrived.
  void completeTransactions(uint32_t mbarrier, int64_t bytes, const ptx::Place &place);
  /// The warpgroup of a warp.
  Warpgroup &warpgroupOf(const Warp &warp) { return warpgroups[static_cast<size_t>(warp.index / warpsOfGroup)]; }
  /// Registers that warps have released and others may take (setmaxnreg).
  int64_t freeRegisters = 0;

private:
  int64_t progress() const;
  std::string describePlace(const Wait &wait) const;
  std::string elsewhere(const Wait &wait) const;
  std::string describeMissing(uint32_t mbarrier) const;
  struct Barrier {
    int arrived = 0, expected = 0;
    uint64_t phase = 0;
    ptx::Place place;     // of the first arrival
    Clock clock, ended;   // of the arrivals so far; of the last completed phase
    uint32_t came = 0;    // warps with arrived lanes
    uint32_t waiting = 0; // waiting warps
    bool reduces = false; // for all arrivals, or for none
    Tally tally;
  };
  /// Comparisons of the block's state at ends of phases of a barrier, while nothing changes elsewhere.
  struct Looks {
    uint64_t moment = 0;
    uint32_t barrier = 0;
    int64_t phases = 0;
    int left = 0; // comparisons with the state that is kept
    std::vector<char> kept;
  };
  /// Called when the lanes of `last` have ended a phase. Whether all others wait for it, and the block repeats its
  /// state.
  bool repeatsAt(const Wait &wait, const Warp &last);
  /// Ends a barrier's phase if all threads have arrived; returns whether it has ended.
  bool endPhaseIfDue(int barrier);
  int threadsLeft() const;

  std::deque<Warp> warps;
  std::vector<Warpgroup> warpgroups;
  std::vector<char> sharedStorage;
  char *sharedMemory = nullptr;
  uint32_t sharedSize = 0;
  std::array<Barrier, barriers + 1> states;
  Clock leftClock;       // of exited threads
  std::vector<int> left; // by warp: exited lanes
  int64_t barriersEnded = 0;
  uint64_t round = 0;
  uint64_t turnsMoment = 0;
  int64_t roundProgress = -1; // at the begin of the round
  uint64_t roundMoment = 0;   // at the begin of the round
  int fruitless = 0;          // rounds without progress
  Looks looks;
};

} // namespace kiln::simulator
