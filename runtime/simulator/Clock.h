// Vector clocks: which accesses happen before others.
//
// The *agents* of a CTA are its warps and its asynchronous copy engines. A CTA has one time, which each release
// advances. An access is an epoch (agent, time). It happens before a warp's present accesses if the warp has seen that
// agent up to that time. Within a warp each lane has its own view (Causality.h).
//
// Every synchronisation object (a barrier, an mbarrier, an atomic word) has a clock: threads release into it and
// acquire from it. The README has an example.

#pragma once

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

} // namespace kiln::simulator
