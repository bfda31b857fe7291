// A block of threads: its warps, its shared memory and its barriers.

#pragma once

#include "runtime/simulator/BulkQueue.h"
#include "runtime/simulator/Clock.h"
#include "runtime/simulator/Mbarriers.h"
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

/// What all blocks of a launch share.
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
  GlobalShadow *globalShadow = nullptr; // null: no check needs it
  int errorTimes = 0;                   // of what approximate instructions may err
  bool counts = false;                  // whether metrics are wanted
  Console *console = nullptr;           // of printf
  int64_t mostSteps = 0;                // of a warp; 0: any number
  Progress *progress = nullptr;
  mutable std::mutex wideAccesses = {}; // held by strong accesses of more than one word of the host (Access.cpp)

  int threads() const { return block[0] * block[1] * block[2]; }
};

/// How lanes come to a barrier.
struct Arrival {
  int barrier = 0;
  int threads = 0; // that it is for; 0: all of the block
  bool onlyArrives = false;
  bool reduces = false;
  Mask predicate = 0; // that the reduction counts
};

class Cta {
public:
  Cta(const Grid &grid, const Extents &coordinates);
  ~Cta();

  /// Gives every warp a turn of `budget` steps, at a moment of the launch that was read before (Progress.h). False when
  /// all have finished. Throws Error when one has done as many as the launch allows, and would go on.
  bool run(int64_t budget, bool reversed, uint64_t now);
  /// What becomes of the block after the turn: it goes on, perhaps with something that had been put off; it is stuck
  /// since the turn's moment until memory changes by another's doing; or nothing can help it any more.
  enum class Outlook : uint8_t { goesOn, stuck, hopeless };
  Outlook goOn();
  /// Remedies when nothing in the launch can move: whether lanes have been let go (Warp.h).
  bool letGoAtJoins();
  bool letGoAlone();
  /// Says who waits for what.
  void reportDeadlock();
  /// All threads have left: what they began is done.
  void finish() { bulk.finish(); }

  char *shared() { return sharedMemory; }
  uint32_t sharedBytes() const { return sharedSize; }
  const Grid &grid;
  const Extents coordinates;
  Findings &findings;
  std::unique_ptr<Shadow> shadow; // null: no check needs it
  Metrics *metrics = nullptr;     // null: nobody counts
  size_t thread = 0;              // of the host, which runs it

  /// Something has changed that other blocks, or other warps of this one, can see.
  void noteChange();
  /// The moment of the launch at which the block has its turn: one for all that is asked about the turn.
  uint64_t moment() const { return turnsMoment; }

  /// Writes the 32 lanes of a special register, 8 bytes each when `wide`, else 4.
  void fillSpecial(const Warp &warp, int special, bool wide, char *to) const;
  Extents threadCoordinates(int thread) const;

  // --- Barriers ----------------------------------------------------------------------------------------------------
  static constexpr int barriers = 16, clusterBarrier = barriers;
  uint64_t phaseOf(int barrier) const { return states[static_cast<size_t>(barrier)].phase; }
  /// The executing lanes of a warp arrive, and wait unless they only arrive. With a reduction, Path::woken has its
  /// tally when they go on.
  void arrive(Warp &warp, const Step &step, const Arrival &arrival);
  /// Lanes that have arrived in a phase wait for its end.
  void waitFor(Warp &warp, int barrier, uint64_t phase);
  /// Threads that have left count as arrived.
  void lanesLeft(const Warp &warp);
  /// Whether what a path of a warp waits for has not come.
  bool stillWaits(const Warp &warp, const Wait &wait) const;
  /// How often all who wait for an mbarrier have been woken since nothing else could go on.
  uint64_t wakings() const { return round; }

  // --- Asynchronous units ------------------------------------------------------------------------------------------
  mutable Mbarriers mbarriers;
  BulkQueue bulk{*this};
  /// Versions of the tensor maps that its threads have acquired, by address.
  std::map<uint64_t, int64_t> acquiredMaps;
  /// Copies of a thread have landed behind which it arrives at an mbarrier.
  void arriveBehindCopies(uint32_t mbarrier, const ptx::Place &place, const Clock &clock,
                          const std::vector<int> &engines);
  /// The agent that stands for what lands through an mbarrier.
  int engineOf(uint32_t mbarrier) const;
  /// Reports what happened to nobody in particular.
  void report(Check check, const ptx::Place &place, const std::string &text);
  /// A place in shared memory, with its name: "128 ('full')".
  std::string placeText(uint32_t place) const { return std::to_string(place) + grid.program.sharedNames.at(place); }
  /// Bytes that an mbarrier expects have come.
  void completeTransactions(uint32_t mbarrier, int64_t bytes, const ptx::Place &place);
  /// The warpgroup that a warp is of.
  Warpgroup &warpgroupOf(const Warp &warp) { return warpgroups[static_cast<size_t>(warp.index / warpsOfGroup)]; }
  /// Registers that warps have given back and that others may take.
  int64_t freeRegisters = 0;

private:
  int64_t progress() const;
  std::string whereOf(const Wait &wait) const;
  std::string elsewhere(const Wait &wait) const;
  std::string lackOf(uint32_t mbarrier) const;
  struct Barrier {
    int arrived = 0, expected = 0;
    uint64_t phase = 0;
    ptx::Place place;     // of the first that arrived
    Clock clock, ended;   // of those that have arrived; of the last phase that has ended
    uint32_t came = 0;    // warps of which lanes have arrived
    uint32_t waiting = 0; // warps
    bool reduces = false; // all who arrive, or nobody
    Tally tally;
  };
  /// Ends a barrier's phase when all have arrived; whether it has ended.
  bool endPhaseIfDue(int barrier);
  int threadsLeft() const;

  std::deque<Warp> warps;
  std::vector<Warpgroup> warpgroups;
  std::vector<char> sharedStorage;
  char *sharedMemory = nullptr;
  uint32_t sharedSize = 0;
  std::array<Barrier, barriers + 1> states;
  Clock leftClock;       // of threads that have left
  std::vector<int> left; // by warp: lanes that have left
  int64_t barriersEnded = 0;
  uint64_t round = 0;
  uint64_t turnsMoment = 0;
  int64_t roundProgress = -1; // when the round began
  uint64_t roundMoment = 0;   // the same
  int fruitless = 0;          // rounds since then
};

} // namespace kiln::simulator
