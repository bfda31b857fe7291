// Tensor maps from text.

#pragma once

#include "runtime/simulator/TensorMap.h"

namespace kiln::simulator {

/// A tensor map that describes an array of the launch.
struct NamedTensorMap {
  size_t array = 0; // index of the argument
  TensorMapDescription description;
};

/// From `tensormap 0 f16 dims=64x32 strides=128 box=32x8`, and if wanted `swizzle=128`, `steps=1x2`, `fill=nan`:
/// innermost first; strides in bytes from the second dimension. Throws Error for another text.
NamedTensorMap tensorMapNamed(const std::string &text);

/// The bytes of the map of an array at `address`. Throws Error for what the driver refuses, too.
std::string tensorMapBytes(TensorMapDescription description, uint64_t address);

} // namespace kiln::simulator
