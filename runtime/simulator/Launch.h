// Runs a kernel of a PTX text with a parameter block.

#pragma once

#include "runtime/simulator/Console.h"
#include "runtime/simulator/Cta.h"
#include "runtime/simulator/Schedule.h"

namespace kiln::simulator {

/// Runs `grid` CTAs of `block` threads. `parameters` is the parameter block of program.parameterBytes bytes. Findings
/// go to `findings`, counts to `metrics`, and output to `console` (standard output without one). `views` names
/// elements. Throws Error for a launch that no GPU accepts.
void launch(const Program &program, const Extents &grid, const Extents &block, uint32_t dynamicShared,
            const char *parameters, const Memory &memory, Findings &findings, const Schedule &schedule = {},
            Metrics *metrics = nullptr, Console *console = nullptr, const ViewNames *views = nullptr);

} // namespace kiln::simulator
