// A launch as the pipe model takes it: the simulator's counts of it, with instructions as the machine code has them
// where that is known.

#pragma once

#include "tools/kiln-bench/pipe_model.h"
#include "tools/kiln-bench/sample.h"
#include "tools/kiln-bench/sass.h"

#include <optional>

namespace kiln::bench {

/// Counts of machine code, by warp.
struct SassCounts {
  Work loop; // a round of the main loop; empty when there is none
  Work whole;
};
/// Of the first kernel of a text. Throws Error when it has none.
SassCounts countsOf(const std::string &sass);
/// Instructions of a warp, of machine code, in a round of the text's main loop; of the whole kernel where there is
/// none.
double instructionsOfRound(const Sample &sample, const SassCounts &sass);

/// Programs of all problems of a launch.
double programsOf(const Launch &launch);
/// Programs that an SM holds at once. Where the registers of a thread are not known, they are as many as it may have.
Occupancy occupancyOf(const GpuFacts &gpu, std::optional<int> registers, const Sample &sample);
/// What predict() takes. `sass` may be null.
LaunchWork launchWorkOf(const Launch &launch, const Sample &sample, const SassCounts *sass, const Occupancy &occupancy);

} // namespace kiln::bench
