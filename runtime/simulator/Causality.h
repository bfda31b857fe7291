// What comes before what in a block: the clocks of its agents (Clock.h), and what moves them.

#pragma once

#include "runtime/simulator/Clock.h"
#include "runtime/simulator/Program.h"

namespace kiln::simulator {

/// How a strong access (an atomic update, or a load or store with .relaxed, .acquire, .release or .volatile) orders
/// others round it.
enum class Ordering : uint8_t { relaxed, acquire, release, both };

class Causality {
public:
  /// Asynchronous engines of a block. What lands through one barrier belongs to one engine, so that to have waited for
  /// another barrier is not enough.
  static constexpr int engines = 16;

  /// `firstAgent`: the number of its first warp in the launch.
  Causality(uint32_t firstAgent, int threads);

  int warps() const { return warpCount; }
  /// The agent that stands for an engine; `key` picks it, say the offset of the barrier that it completes.
  int engine(uint32_t key) const { return warpCount + static_cast<int>(key % engines); }
  uint32_t firstAgent() const { return first; } // of the block, in the launch
  /// The time that what an agent does now gets: one since it last released, the same for all who came from one barrier.
  Time stampOf(int agent) const { return agents[static_cast<size_t>(agent)].stamp; }

  // --- Synchronising ---------------------------------------------------------------------------------------------
  /// All that the agent has done or seen goes into the clock.
  void release(int agent, Clock &into);
  /// The lanes of a warp see what the clock holds.
  void acquire(int warp, Mask lanes, const Clock &from);
  /// The lanes of a warp wait for each other (bar.warp.sync).
  void joinLanes(int warp, Mask lanes);
  /// Lanes that have left see nothing any more.
  void leave(int warp, Mask lanes);
  /// fence, membar: relaxed writes that follow publish what came before it, relaxed reads before it are acquired.
  void fence(int warp, Mask lanes);
  /// fence.proxy.async: asynchronous engines may read what the warp has seen so far.
  void proxyFence(int warp);
  /// What a strong write of the warp releases into the place it writes; empty when that is nothing.
  const Clock &published(int warp, Ordering ordering);
  /// A strong read of a place with this clock.
  void collect(int warp, Mask lanes, Ordering ordering, const Clock &from);

  // --- Asking ------------------------------------------------------------------------------------------------------
  /// Up to this time every warp of the block has been seen by the warp and all its lanes.
  Time floorOf(int warp) const { return agents[static_cast<size_t>(warp)].floor; }
  /// By agent of the block; the warp's own entry is that of the lane that has seen least of it.
  const Time *seenBy(int warp) const { return agents[static_cast<size_t>(warp)].clock.seen.data(); }
  /// Whether what a lane of `epoch`'s agent did came before what this lane does now, where they are not the same lane;
  /// lane −1: what all lanes do.
  bool isBefore(const Epoch &epoch, int warp, int lane) const;
  /// Whether it did with a proxy fence between.
  bool isFenced(const Epoch &epoch, int warp) const;

private:
  struct Agent {
    Clock clock;
    std::array<Time, lanesOfWarp> lanes{}; // up to which each lane has seen the others of its warp
    Time floor = 0, stamp = 1;
    Clock atFence; // what the last fence released
    Clock released;
    Clock read; // what relaxed reads have met since
  };
  void updateFloor(Agent &agent, int number);

  uint32_t first;
  int warpCount;
  Time time = 1;
  std::vector<Agent> agents;
};

} // namespace kiln::simulator
