// How kiln-bench measures: contenders take turns, so that whatever disturbs the machine disturbs them all, and each
// one's time is its median.

#pragma once

#include <functional>
#include <vector>

namespace kiln::bench {

/// One thing to time. It must do the same work at each call.
using Contender = std::function<void()>;

/// Rounds, each of which times every contender once.
inline constexpr int usualRounds = 7;

/// Median seconds a call for each contender. Every contender is called once before, unmeasured (it compiles, and
/// touches its memory); then a sample is as many calls as take `sampleSeconds`, at least one, and `finish`, which waits
/// for what they have asked for. `rounds` is odd.
std::vector<double> measure(
    const std::vector<Contender> &contenders, int rounds, double sampleSeconds,
    const std::function<void()> &finish = [] {});

/// Middle of an odd number of values.
double median(std::vector<double> values);
/// Geometric mean; 0 for no values.
double geometricMean(const std::vector<double> &values);

} // namespace kiln::bench
