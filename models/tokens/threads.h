// Independent pieces of work on several threads.

#pragma once

#include <cstddef>
#include <functional>

namespace kiln {

/// Does `count` pieces of work, each on the first of `threads` threads that is free. Each thread asks `worker` once for
/// the function that does them. What one of them throws is thrown here, when all threads are done.
void workTogether(int threads, size_t count, const std::function<std::function<void(size_t)>()> &worker);

} // namespace kiln
