// The parts of kiln-gpu that are no other program.

#pragma once

#include <string>

namespace kiln::gpu {

/// `approximations [--device D] [--every N]`: applies each approximate f32 instruction to every Nth of the 2³² words
/// and prints a JSON object a line: {instruction, inputs, max_ulp, max_relative, at, odd}. `at` is the word of the
/// largest error in units of the last place. `odd` counts results that are NaN or infinite where the true one is not,
/// or the reverse. Returns an exit status.
int approximationsMain(int argc, char **argv);

// The simulator's own tests as tests of a GPU, and of the simulator. The GPU runs each of their launches too, from
// equal memory, and must leave equal bits.

/// The exit status of a process that has ended for a fault of the GPU, in which the tests that follow have not run.
inline constexpr int faultStatus = 75;

/// From now on, every launch of the simulator's tests without findings runs on `cuda:0`, too. For each one, a line is
/// added to the file at `path`, a JSON object {test, kernel, target, outcome, detail}. Throws Error without a GPU.
///
///     outcome      detail
///     equal
///     different    the first byte that differs
///     varies       the first byte that differs, and why it may
///     skipped      why
///     refused      the driver's words
///     fault        of the GPU; then the process ends with faultStatus
void compareLaunches(const std::string &path);

} // namespace kiln::gpu
