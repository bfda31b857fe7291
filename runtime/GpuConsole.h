// Reads the console of a GPU module on the host: printed lines and the first failed check.

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

/// Prints the lines of the console, ordered by launch and then by program. Returns the first failed check. `textOf`
/// gives the module's texts by index, `gridOf` the grid of a launch of `kernel`.
std::optional<FailedCheck> readConsole(const abi::GpuConsole &console, const std::string &kernel,
                                       const std::function<std::string(uint32_t number)> &textOf,
                                       const std::function<Grid(int64_t launch)> &gridOf);

} // namespace kiln
