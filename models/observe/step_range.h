// A range of steps of a run.

#pragma once

#include <cstdint>
#include <string>

namespace kiln {

/// Steps `first` to `last` of a run, both included.
struct StepRange {
  int64_t first = 0, last = 0;
  bool operator==(const StepRange &) const = default;
};
/// `A:B`, or `A` for one step. Throws Error, which names `flag`, for another text, and unless 1 ≤ A ≤ B.
StepRange stepRangeNamed(const std::string &flag, const std::string &text);

} // namespace kiln
