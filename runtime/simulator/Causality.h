// The happens-before order in a CTA: the vector clocks of its agents, and the operations that advance them.
//
// The *agents* of a CTA are its warps and its asynchronous copy engines. A CTA has one time, which each release
// advances. An access is an epoch (agent, time). It happens before a warp's present accesses if the warp has seen that
// agent up to that time. Within a warp each lane has its own view.
//
// Every synchronisation object (a barrier, an mbarrier, an atomic word) has a clock: threads release into it and
// acquire from it. The README has an example.

#pragma once

#include "runtime/simulator/Program.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace kiln::simulator {

using Time = uint32_t;

/// An access, or all accesses of an agent of the launch up to a time.
struct Epoch {
  uint32_t agent = 0;
  Time time = 0;
  friend auto operator<=>(const Epoch &, const Epoch &) = default;
};
/// Epochs of agents of other CTAs, in order; shared, because most clocks have equal ones. Null: none.
using Others = std::shared_ptr<const std::vector<Epoch>>;
Others join(const Others &a, const Others &b);

struct Clock {
  /// By agent of the CTA: the time up to which its accesses happen before the present. Empty: none.
  std::vector<Time> seen;
  /// By agent: the time up to which asynchronous engines may rely on its accesses, through a proxy fence.
  std::vector<Time> fenced;
  Others others;

  void join(const Clock &other);
  bool empty() const { return seen.empty() && !others; }
  void clear() { *this = {}; }
};

/// The memory order of a strong access (an atomic, or a load or store with .relaxed, .acquire, .release or .volatile);
/// none of another access.
enum class Ordering : uint8_t { none, relaxed, acquire, release, both };

class Causality {
public:
  /// Asynchronous engines of a CTA. Copies that complete at one barrier belong to one engine, so waiting for another
  /// barrier does not order them.
  static constexpr int engines = 16;

  /// `firstAgent`: the number of its first warp in the launch.
  Causality(uint32_t firstAgent, int threads);

  int warps() const { return warpCount; }
  /// The agent of an engine. `key` selects it, for example the offset of the barrier that it completes.
  int engine(uint32_t key) const { return warpCount + static_cast<int>(key % engines); }
  uint32_t firstAgent() const { return first; } // of the CTA, in the launch
  /// The time of an agent's present accesses: the time since its last release. Warps that leave a barrier have one
  /// time.
  Time stampOf(int agent) const { return agents[static_cast<size_t>(agent)].stamp; }

  // --- Synchronising ---------------------------------------------------------------------------------------------
  /// Joins everything that the agent has done or seen into the clock.
  void release(int agent, Clock &into);
  /// The lanes of a warp see the contents of the clock.
  void acquire(int warp, Mask lanes, const Clock &from);
  /// The lanes of a warp synchronise (bar.warp.sync).
  void joinLanes(int warp, Mask lanes);
  /// Lanes that have exited no longer see anything.
  void leave(int warp, Mask lanes);
  /// fence, membar: later relaxed writes publish everything before the fence; earlier relaxed reads are acquired.
  /// `inBlock`: among the warps of the CTA.
  void fence(int warp, Mask lanes, bool inBlock);
  /// fence.proxy.async: asynchronous engines may read everything that the warp has seen.
  void proxyFence(int warp);
  /// The clock that a strong write of the warp releases to its word; may be empty.
  const Clock &published(int warp, Ordering ordering);
  /// The clock that a strong write of the warp without an order releases to the CTA, since a fence among its warps; may
  /// be empty.
  const Clock &publishedInBlock(int warp) const { return agents[static_cast<size_t>(warp)].atBlockFence; }
  /// A strong read of a word with this clock, which threads of the CTA (`ofBlock`) or of others have released to it.
  void collect(int warp, Mask lanes, Ordering ordering, const Clock &from, bool ofBlock);

  // --- Asking ------------------------------------------------------------------------------------------------------
  /// The time up to which the warp and all its lanes have seen every warp of the CTA.
  Time floorOf(int warp) const { return agents[static_cast<size_t>(warp)].floor; }
  /// The clock of a warp, by agent of the CTA. The warp's own entry is that of the lane that has seen least of it.
  const Time *seenBy(int warp) const { return agents[static_cast<size_t>(warp)].clock.seen.data(); }
  /// Whether an access in `epoch` by another lane happens before an access of this lane now. Lane −1: of all lanes.
  bool isBefore(const Epoch &epoch, int warp, int lane) const;
  /// Whether it happens before with a proxy fence in between.
  bool isFenced(const Epoch &epoch, int warp) const;

private:
  /// The clocks of relaxed reads, until all lanes that have read have met a fence.
  struct Reads {
    Clock clock;
    Mask lanes = 0;
  };
  struct Agent {
    Clock clock;
    std::array<Time, lanesOfWarp> lanes{}; // the time up to which each lane has seen the others of its warp
    Time floor = 0, stamp = 1;
    Clock atFence;      // the clock that the last fence released
    Clock atBlockFence; // the clock that a later fence among the warps of the CTA released
    Clock released;
    Reads ofBlock, ofOthers; // relaxed reads, by the block of the threads that released
  };
  void acquire(int warp, Mask lanes, Reads &reads);
  void updateFloor(Agent &agent, int number);

  uint32_t first;
  int warpCount;
  Time time = 1;
  std::vector<Agent> agents;
};

} // namespace kiln::simulator
