// What programs say, in words: the same on every device.

#pragma once

#include "dialect/dsl/Plan.h"

#include <string>

namespace kiln {

/// `check failed: MESSAGE, in kernel 'K' at WHERE, program (x, y, z), element N`; `program` counts as lowering/Abi.h
/// does, `element` in row-major order.
std::string failedCheckText(const std::string &message, const std::string &where, const std::string &kernel,
                            const Grid &grid, int64_t program, int64_t element);

/// `program P: LABEL = [[1, 2], [3, 4]]` and a line's end: a tile of these extents, dense in row-major order at `data`.
/// Floats by the fewest digits that tell them from their neighbours.
std::string printedLine(const std::string &label, int64_t program, Type type, const Shape &extents, const char *data);

} // namespace kiln
