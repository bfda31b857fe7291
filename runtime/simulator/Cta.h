// A block of threads: its warps, its shared memory and its barriers.

#pragma once

#include "runtime/simulator/Clock.h"
#include "runtime/simulator/Warp.h"

#include <deque>

namespace kiln::simulator {

class GlobalShadow;
class Metrics;
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
  Checks checks = {};
  GlobalShadow *globalShadow = nullptr; // null: no check needs it
  int errorTimes = 0;                   // of what approximate instructions may err
  bool counts = false;                  // whether metrics are wanted

  int threads() const { return block[0] * block[1] * block[2]; }
};

class Cta {
public:
  Cta(const Grid &grid, const Extents &coordinates);
  ~Cta();

  /// Gives every warp a turn, in `order`'s direction. False when all have finished.
  bool run(int64_t budget, bool reversed);
  /// Whether no warp can ever go on: says who waits for what.
  bool stuck();

  char *shared() { return sharedMemory; }
  uint32_t sharedBytes() const { return sharedSize; }
  const Grid &grid;
  const Extents coordinates;
  Findings &findings;
  std::unique_ptr<Shadow> shadow; // null: no check needs it
  Metrics *metrics = nullptr;     // null: nobody counts

  /// Writes the 32 lanes of a special register, 8 bytes each when `wide`, else 4.
  void fillSpecial(const Warp &warp, int special, bool wide, char *to) const;
  Extents threadCoordinates(int thread) const;

  // --- Barriers ----------------------------------------------------------------------------------------------------
  static constexpr int barriers = 16, clusterBarrier = barriers;
  uint64_t phaseOf(int barrier) const { return states[static_cast<size_t>(barrier)].phase; }
  /// The executing lanes of a warp arrive; `threads` 0 means all of the block. They wait unless `arriveOnly`.
  void arrive(Warp &warp, const Step &step, int barrier, int threads, bool arriveOnly);
  /// Threads that have left count as arrived.
  void lanesLeft(const Warp &warp);

private:
  struct Barrier {
    int arrived = 0, expected = 0;
    uint64_t phase = 0;
    ptx::Place place;     // of the first that arrived
    Clock clock;          // of those that have arrived
    uint32_t waiting = 0; // warps
  };
  void completeIfDue(Barrier &barrier);
  int threadsLeft() const;

  std::deque<Warp> warps;
  std::vector<char> sharedStorage;
  char *sharedMemory = nullptr;
  uint32_t sharedSize = 0;
  std::array<Barrier, barriers + 1> states;
  Clock leftClock;       // of threads that have left
  std::vector<int> left; // by warp: lanes that have left
};

} // namespace kiln::simulator
