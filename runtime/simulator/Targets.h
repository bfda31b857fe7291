// The published targets and versions of PTX, and the simulated GPUs.

#pragma once

#include "dialect/dsl/Plan.h"
#include "runtime/simulator/ptx/Module.h"

#include <span>

namespace kiln::simulator {

/// The maximum shared memory of a CTA, static and dynamic, on GPUs of the module's `.target`. Throws Error unless the
/// text has a known `.version` and a known `.target`.
int64_t checkTarget(const ptx::Module &module);

/// A simulated GPU: for an architecture of the compiler, the facts about one GPU of it.
struct Architecture {
  const char *name; // "sm_80"
  const char *gpu;  // the GPU of these facts, from its data sheet
  GpuFacts facts;
};

std::span<const Architecture> architectures();
/// The architecture with this name, or null.
const Architecture *architectureNamed(std::string_view name);
/// Whether a GPU of this architecture accepts PTX with this `.target`: an equal or older one. A target with a letter at
/// the end must be equal.
bool takes(const Architecture &architecture, std::string_view target);

} // namespace kiln::simulator
