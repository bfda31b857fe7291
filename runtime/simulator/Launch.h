// Running a kernel of a PTX text: parse once, then launch with a parameter block.

#pragma once

#include "runtime/simulator/Cta.h"

namespace kiln::simulator {

/// In which order blocks and the warps of a block get their turns.
enum class Order : uint8_t { forward, reverse, random };

/// How a launch is run.
struct Schedule {
  Order order = Order::forward;
  Delivery delivery = Delivery::late;
  uint64_t seed = 0;
  Checks checks = {};
  /// Approximate f32 instructions err by up to so many times what the PTX ISA allows; 0: not at all.
  int errorTimes = 0;
  int threads = 0; // of the host; 0: as many as there are cores
  /// Steps after which a launch that has not ended is given up, and counted as hanging; 0: none.
  int64_t mostSteps = 0;
};

/// Runs `grid` blocks of `block` threads; `parameters` is the kernel's parameter block, of program.parameterBytes
/// bytes. What the kernel does wrong goes to `findings`, what it did to `metrics`. Throws Error for a launch that no
/// GPU takes.
void launch(const Program &program, const Extents &grid, const Extents &block, uint32_t dynamicShared,
            const char *parameters, const Memory &memory, Findings &findings, const Schedule &schedule = {},
            Metrics *metrics = nullptr);

} // namespace kiln::simulator
