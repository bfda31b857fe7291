// Measures times for kiln-bench. Contenders are measured in turn, so that a disturbance of the machine affects all of
// them. The time of each is its median.

#pragma once

#include <functional>
#include <vector>

namespace kiln::bench {

/// A function to time. Each call must do equal work.
using Contender = std::function<void()>;

/// Rounds, each of which times every contender once.
inline constexpr int usualRounds = 7;

/// The median seconds per call of each contender. Every contender is first called once without measurement, to compile
/// and to access its memory. A sample is as many calls as take `sampleSeconds`, at least one, and `finish`, which waits
/// for their work. `rounds` is odd.
std::vector<double> measure(
    const std::vector<Contender> &contenders, int rounds, double sampleSeconds,
    const std::function<void()> &finish = [] {});

/// The median of an odd number of values.
double median(std::vector<double> values);
/// Geometric mean; 0 for no values.
double geometricMean(const std::vector<double> &values);

} // namespace kiln::bench
