// Reports after a launch: findings, and instructions and memory traffic by source line.

#pragma once

#include "runtime/simulator/Findings.h"
#include "runtime/simulator/Metrics.h"

#include <array>
#include <string>
#include <vector>

namespace kiln::simulator {

/// One line per finding: place in the source, check, description with the first thread, count.
std::string textOf(const Findings &findings, const Program &program);

/// The classes of instructions that reports count.
enum class InstructionClass : uint8_t { memory, matrix, floating, integer, control, barrier, wait, other };
inline constexpr std::array<const char *, 8> instructionClasses = {"memory",  "matrix",   "float", "integer",
                                                                   "control", "barriers", "waits", "other"};

/// An instruction of the PTX text that ran.
struct InstructionCounts {
  ptx::Place place;
  std::string name; // "ld.global.f32"
  InstructionClass kind;
  StepMetrics total;
};
/// All of them, in the text's order within a function.
std::vector<InstructionCounts> countsByInstruction(const Program &program, const Metrics &metrics);

/// A table with a row per source line, in order; without `.loc`, per PTX line. Its columns are warp instructions by
/// class, wavefronts of shared memory and sectors of global memory with their minimum, local memory, and bytes of
/// asynchronous engines. If a line has several instructions that access memory, each has a row below it.
std::string reportTable(const Program &program, const Metrics &metrics);

/// An SVG picture of the lines with the most wasted wavefronts and sectors: bars of needed and wasted ones.
std::string reportPicture(const Program &program, const Metrics &metrics);

} // namespace kiln::simulator
