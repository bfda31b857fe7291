// The pipe model's input for a launch: the simulator's counts, with the instructions of the machine code if it is
// known.

#pragma once

#include "tools/kiln-bench/pipe_model.h"
#include "tools/kiln-bench/sample.h"
#include "tools/kiln-bench/sass.h"

#include <optional>

namespace kiln::bench {

/// Counts of a warp's machine code.
struct SassCounts {
  Work loop; // an iteration of the main loop; empty without a loop
  Work whole;
};
/// The counts of the first kernel of a disassembly. Throws Error if it has none.
SassCounts countsOf(const std::string &sass);
/// A warp's machine instructions in an iteration of the PTX's main loop; those of the whole kernel without a loop.
double instructionsOfRound(const Sample &sample, const SassCounts &sass);

/// The number of programs of all problems of a launch.
double programsOf(const Launch &launch);
/// The programs that are resident on an SM. Without `registers`, a thread is taken to have the maximum number.
Occupancy occupancyOf(const GpuFacts &gpu, std::optional<int> registers, const Sample &sample);
/// The input of predict(). `sass` may be null.
LaunchWork launchWorkOf(const Launch &launch, const Sample &sample, const SassCounts *sass, const Occupancy &occupancy);

} // namespace kiln::bench
