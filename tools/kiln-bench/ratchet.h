// Baselines: a file with memory traffic, waits and other counts of kernels. A test fails if a number gets worse.

#pragma once

#include "tools/kiln-bench/static_rows.h"

namespace kiln::bench {

/// The measures of a row, by name. A larger number is worse; more registers are worse only if fewer warps then fit an
/// SM. Numbers are those of the whole launch. The idle warps of an SM (the maximum less the resident ones), registers
/// and spills need ptxas.
std::vector<std::pair<std::string, int64_t>> heldOf(const StaticRow &row);

/// Compares rows with the file, a JSON object of kernels, each an object of measures. Returns a line for each worse
/// number, for each kernel that only the file has, and for each kernel that the file lacks; empty if there is none.
/// Measures that a row lacks are skipped, and named in `skipped`. Throws Error if the file cannot be read.
std::string compareWith(const std::string &file, const std::vector<StaticRow> &rows, std::string &skipped);
/// Writes the rows to the file as new baselines.
void accept(const std::string &file, const std::vector<StaticRow> &rows);

} // namespace kiln::bench
