// Numbers that may not get worse: what kernels ask of memory and how often they wait, in a file that a test holds.

#pragma once

#include "tools/kiln-bench/static_rows.h"

namespace kiln::bench {

/// What of a row is held, by name; more is worse, of registers where fewer warps fit an SM. Numbers are those of the
/// whole launch; warps that an SM could hold beside the kernel's, registers and spills are there when ptxas is.
std::vector<std::pair<std::string, int64_t>> heldOf(const StaticRow &row);

/// Compares rows with the file, a JSON object of kernels, each an object of measures. A line for each number that is
/// worse, each kernel that the file has and the rows have not, and each that the file lacks: empty when all is well.
/// Measures that a row lacks are left out, and named in `skipped`. Throws Error when the file cannot be read.
std::string compareWith(const std::string &file, const std::vector<StaticRow> &rows, std::string &skipped);
/// Writes the file anew.
void accept(const std::string &file, const std::vector<StaticRow> &rows);

} // namespace kiln::bench
