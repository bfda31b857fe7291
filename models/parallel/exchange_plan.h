// The traffic of a rank in a step, and its time by a network model. The parameters are given, not measured.

#pragma once

#include "models/parallel/shards.h"

#include <cstdint>

namespace kiln {

/// The traffic of a rank in a step, in each direction, and the number of exchanges.
struct ExchangePlan {
  int64_t gradients = 0, weights = 0; // bytes
  int64_t rounds = 0;                 // exchanges, each of a message to every other rank

  int64_t bytes() const { return gradients + weights; }
  /// Seconds, with `bandwidth` bytes a second in each direction, and `latency` seconds before an exchange moves
  /// anything. Nothing overlaps.
  double seconds(double bandwidth, double latency) const;
};

/// For gradients in f32, and weights whose elements have `weightBytes`: each rank sends (R − 1) / R of both.
ExchangePlan exchangePlan(const Shards &shards, int64_t weightBytes);

/// Default parameters of seconds(): ten gigabits a second minus protocol overhead, and the time of a small message over
/// TCP.
inline constexpr double assumedBandwidth = 1e9, assumedLatency = 50e-6;

} // namespace kiln
