// Who has seen what: vector clocks.
//
// The threads of a block are counted as its *agents*: its warps, then the engines that copy asynchronously. A block has
// one time, which a release moves on, so that an access is an epoch (agent, time), and it comes before what a warp does
// now if the warp has seen that agent up to that time. Within a warp it is the lanes that see (Causality.h).
//
// Whatever threads synchronise by (a barrier, an mbarrier, a word that atomics update) carries a clock: they release
// into it and acquire from it.

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace kiln::simulator {

using Time = uint32_t;

/// What an agent of the launch did up to a time.
struct Epoch {
  uint32_t agent = 0;
  Time time = 0;
  friend auto operator<=>(const Epoch &, const Epoch &) = default;
};
/// Of other blocks' agents, in order; shared, since most clocks have the same. Null: nothing.
using Others = std::shared_ptr<const std::vector<Epoch>>;
Others join(const Others &a, const Others &b);

struct Clock {
  /// By agent of the block: the time up to which what it did has happened before. Empty: nothing.
  std::vector<Time> seen;
  /// The same with a proxy fence since: what asynchronous engines may read, too.
  std::vector<Time> fenced;
  Others others;

  void join(const Clock &other);
  bool empty() const { return seen.empty() && !others; }
  void clear() { *this = {}; }
};

} // namespace kiln::simulator
