// How far the approximate instructions of a GPU are from the truth, over every input that there is.

#pragma once

namespace kiln::gpu {

/// `approximations [--device D] [--every N]`: applies each approximate f32 instruction to every Nth of the 2³² words
/// and prints a JSON object a line: {instruction, inputs, max_ulp, max_relative, at, odd}. `at` is the word of the
/// largest error in units of the last place; `odd` counts results that are NaN or infinite where the true one is not,
/// or the other way round. Returns an exit status.
int approximationsMain(int argc, char **argv);

} // namespace kiln::gpu
