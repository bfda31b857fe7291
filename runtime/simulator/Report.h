// What is said after a launch: what it did wrong, and its instructions and memory traffic by line of the source.

#pragma once

#include "runtime/simulator/Findings.h"
#include "runtime/simulator/Metrics.h"

#include <string>

namespace kiln::simulator {

/// A line for each finding: the place in the source, the check, what happened and to whom first, how often.
std::string textOf(const Findings &findings, const Program &program);

/// A table with a row for each line of the source (of the PTX where the text has no `.loc`), in their order: the
/// instructions that warps ran, by class; wavefronts of shared memory and sectors of global memory beside the fewest
/// that would do; local memory, and bytes that asynchronous units move. Below a line with several instructions that
/// touch memory each of these has a row of its own.
std::string reportTable(const Program &program, const Metrics &metrics);

/// A picture (SVG) of the lines that lose most wavefronts and sectors: bars of what is needed and what is lost.
std::string reportPicture(const Program &program, const Metrics &metrics);

} // namespace kiln::simulator
