// The console of a GPU's module, read by the host: what its programs have printed, and the check that failed first.

#pragma once

#include "dialect/dsl/Plan.h"
#include "lowering/Abi.h"

#include <functional>
#include <optional>
#include <string>

namespace kiln {

/// A check that failed in a launch.
struct FailedCheck {
  int64_t launch = 0;
  std::string text;
};

/// Prints the lines of the console, those of an earlier launch and a lower program first, and returns the first
/// failure. `textOf` gives the module's texts by their numbers; `gridOf` the grid of a launch of `kernel`.
std::optional<FailedCheck> readConsole(const abi::GpuConsole &console, const std::string &kernel,
                                       const std::function<std::string(uint32_t number)> &textOf,
                                       const std::function<Grid(int64_t launch)> &gridOf);

} // namespace kiln
