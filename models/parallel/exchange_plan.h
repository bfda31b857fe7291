// What ranks send each other in a step, and how long that takes, by a model of the network that is told, not measured.

#pragma once

#include "models/parallel/shards.h"

#include <cstdint>

namespace kiln {

/// What a rank sends in a step, and receives; and how often it waits for the others.
struct ExchangePlan {
  int64_t gradients = 0, weights = 0; // bytes
  int64_t rounds = 0;                 // exchanges, each of a message to every other rank

  int64_t bytes() const { return gradients + weights; }
  /// Seconds: `bandwidth` bytes a second that a rank sends while it receives as many, and `latency` seconds before an
  /// exchange moves anything. Nothing overlaps.
  double seconds(double bandwidth, double latency) const;
};

/// Of gradients in f32, and of weights whose elements have `weightBytes`: each rank sends (R − 1) / R of both.
ExchangePlan exchangePlan(const Shards &shards, int64_t weightBytes);

/// What seconds() takes where nobody says better: ten gigabits a second less what protocols take, and the time of a
/// small message over TCP.
inline constexpr double assumedBandwidth = 1e9, assumedLatency = 50e-6;

} // namespace kiln
