// The parts of kiln-gpu that are no other program.

#pragma once

#include <string>

namespace kiln::gpu {

/// `approximations [--device D] [--every N]`: applies each approximate f32 instruction to every Nth of the 2³² words
/// and prints a JSON object a line: {instruction, inputs, max_ulp, max_relative, at, odd}. `at` is the word of the
/// largest error in units of the last place; `odd` counts results that are NaN or infinite where the true one is not,
/// or the other way round. Returns an exit status.
int approximationsMain(int argc, char **argv);

// The simulator's own tests as tests of a GPU, and of the simulator: whatever they launch the GPU runs as well, from
// the same memory, and must leave the same bits.

/// The exit status of a process that has ended for a fault of the GPU, in which the tests that follow have not run.
inline constexpr int faultStatus = 75;

/// From now on every launch of the simulator's tests that the simulator finds nothing wrong with runs on `cuda:0`, too.
/// A JSON object a line is added to the file at `path`: {test, kernel, target, outcome, detail}, the outcome being
/// `equal`, `different` (with the first byte that is), `varies` (that, and why it may), `skipped` (and why), `refused`
/// (with the driver's words) or `fault`, of the GPU, after which the process ends with faultStatus. Throws Error
/// without a GPU.
void compareLaunches(const std::string &path);

} // namespace kiln::gpu
