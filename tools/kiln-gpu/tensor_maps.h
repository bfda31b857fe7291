// Tensor maps of the simulator's tests in the driver's form.

#pragma once

#include "runtime/cuda/Driver.h"

#include <functional>
#include <vector>

namespace kiln::gpu {

/// Replaces each tensor map of the simulator's among the bytes by the driver's of the same array, at the address that
/// `translate` gives, and returns where they begin. Throws Error for a driver that makes none or refuses one.
std::vector<size_t> replaceTensorMaps(const cuda::Driver &driver, std::vector<char> &bytes,
                                      const std::function<uint64_t(uint64_t)> &translate);
inline constexpr size_t tensorMapBytes = 128;

} // namespace kiln::gpu
