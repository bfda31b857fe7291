// What other files need of wgmma.

#pragma once

#include "runtime/simulator/Warp.h"

namespace kiln::simulator {

/// Runs a step that touches registers of a wgmma, after the rules for these have been asked.
void runWatched(Warp &warp, const Step &step);

/// Compares an instruction of a warpgroup with what its other warps did there: `first` and `second` are what must be
/// equal. Reports what is not, or that the warp is not whole.
struct GroupInstruction;
GroupInstruction &agree(Warp &warp, const Step &step, uint64_t first, uint64_t second);

} // namespace kiln::simulator
