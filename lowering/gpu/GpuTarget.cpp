// The list of architectures.

#include "lowering/gpu/GpuTarget.h"

#include <algorithm>

namespace kiln::lowering::gpu {

const std::vector<GpuTarget> &gpuTargets() {
  static const std::vector<GpuTarget> targets = {
      {"sm_80", 80, 163 << 10, 70},
      {"sm_86", 86, 99 << 10, 71},
      {"sm_89", 89, 99 << 10, 78, /*coarseBytes=*/true},
      {"sm_90a", 90, 227 << 10, 80},
      {"sm_100a", 100, 227 << 10, 86},
      {"sm_120", 120, 99 << 10, 87, /*coarseBytes=*/true},
  };
  return targets;
}

const GpuTarget *gpuNamed(const std::string &name) {
  const auto &targets = gpuTargets();
  const auto found = std::find_if(targets.begin(), targets.end(),
                                  [&](const GpuTarget &target) { return target.architecture == name; });
  return found == targets.end() ? nullptr : &*found;
}

} // namespace kiln::lowering::gpu
