// Running a kernel of a PTX text: parse once, then launch with a parameter block.

#pragma once

#include "runtime/simulator/Console.h"
#include "runtime/simulator/Cta.h"
#include "runtime/simulator/Schedule.h"

namespace kiln::simulator {

/// Runs `grid` blocks of `block` threads; `parameters` is the kernel's parameter block, of program.parameterBytes
/// bytes. What the kernel does wrong goes to `findings`, what it did to `metrics`, what it prints to `console`, and to
/// standard output without one. Throws Error for a launch that no GPU takes.
void launch(const Program &program, const Extents &grid, const Extents &block, uint32_t dynamicShared,
            const char *parameters, const Memory &memory, Findings &findings, const Schedule &schedule = {},
            Metrics *metrics = nullptr, Console *console = nullptr);

} // namespace kiln::simulator
