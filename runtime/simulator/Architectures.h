// The GPUs that can be simulated: an architecture by the compiler's name, with what a plan may know of one GPU of it.

#pragma once

#include "dialect/dsl/Plan.h"

#include <span>

namespace kiln::simulator {

struct Architecture {
  const char *name; // "sm_80"
  const char *gpu;  // whose facts these are, from its data sheet
  GpuFacts facts;
};

std::span<const Architecture> architectures();
/// The architecture called `name`, or null.
const Architecture *architectureNamed(std::string_view name);
/// Whether a GPU of this architecture takes PTX with this `.target`: one as old or older; with a letter at the end, its
/// own only.
bool takes(const Architecture &architecture, std::string_view target);

} // namespace kiln::simulator
