// Parallel execution of independent tasks.

#pragma once

#include <cstddef>
#include <functional>

namespace kiln {

/// Runs `count` tasks, each on the first free one of `threads` threads. Each thread calls `worker` once for the
/// function that runs its tasks. An exception of a task is rethrown when all threads are done.
void workTogether(int threads, size_t count, const std::function<std::function<void(size_t)>()> &worker);

} // namespace kiln
