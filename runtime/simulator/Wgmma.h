// Functions of wgmma for other files.

#pragma once

#include "runtime/simulator/Warp.h"

namespace kiln::simulator {

/// Runs a step that touches registers of a wgmma, after checking WgmmaRules.
void runWatched(Warp &warp, const Step &step);

/// Compares an instruction of a warpgroup with the record of its other warps. `first` and `second` must be equal.
/// Reports differences, and missing lanes of the warp.
struct GroupInstruction;
GroupInstruction &agree(Warp &warp, const Step &step, uint64_t first, uint64_t second);

} // namespace kiln::simulator
