// The number of host threads.

#pragma once

namespace kiln {

/// KILN_THREADS, else the cores that this process may use. Throws Error if KILN_THREADS is not a number of threads.
int threadsAsked();
/// Throws Error if the number of threads is not allowed.
void checkThreads(int threads);

} // namespace kiln
