// The output of programs as text, equal on every device.

#pragma once

#include "dialect/dsl/Plan.h"

#include <string>

namespace kiln {

/// `check failed: MESSAGE, in kernel 'K' at WHERE, program (x, y, z), element N`. `program` is numbered as in
/// lowering/Abi.h, `element` in row-major order.
std::string failedCheckText(const std::string &message, const std::string &where, const std::string &kernel,
                            const Grid &grid, int64_t program, int64_t element);

/// The line `program P: LABEL = [[1, 2], [3, 4]]`: a tile of these extents, dense in row-major order at `data`. Floats
/// have the shortest digits that identify them.
std::string printedLine(const std::string &label, int64_t program, Type type, const Shape &extents, const char *data);

} // namespace kiln
