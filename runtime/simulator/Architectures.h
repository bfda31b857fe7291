// The simulated GPUs: for each architecture of the compiler, the facts about one GPU of it.

#pragma once

#include "dialect/dsl/Plan.h"

#include <span>

namespace kiln::simulator {

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
