// The simulator's own tests as tests of a GPU, and of the simulator: whatever they launch the GPU runs as well, from
// the same memory, and must leave the same bits.

#pragma once

#include <string>

namespace kiln::gpu {

/// From now on every launch of the simulator's tests that the simulator finds nothing wrong with runs on `cuda:0`, too.
/// A JSON object a line is added to the file at `path`: {test, kernel, target, outcome, detail}, the outcome being
/// `equal`, `different` (with the first byte that is) or `refused` (with the driver's words). Throws Error without a
/// GPU.
void compareLaunches(const std::string &path);

} // namespace kiln::gpu
