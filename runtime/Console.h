// The output of programs as text, equal on every device: printed lines and failed checks. Reads the console of a GPU
// module on the host.

#pragma once

#include "dialect/dsl/Plan.h"
#include "lowering/Abi.h"

#include <functional>
#include <optional>
#include <string>

namespace kiln {

/// `check failed: MESSAGE, in kernel 'K' at WHERE, program (x, y, z), element N`. `program` is numbered as in
/// lowering/Abi.h, `element` in row-major order.
std::string failedCheckText(const std::string &message, const std::string &where, const std::string &kernel,
                            const Grid &grid, int64_t program, int64_t element);

/// The line `program P: LABEL = [[1, 2], [3, 4]]`: a tile of these extents, dense in row-major order at `data`. Floats
/// have the shortest digits that identify them.
std::string printedLine(const std::string &label, int64_t program, Type type, const Shape &extents, const char *data);

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
