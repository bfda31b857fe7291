// How many threads of the host to use.

#pragma once

namespace kiln {

/// KILN_THREADS, else the cores this process may use. Throws Error when KILN_THREADS is no number of threads.
int threadsAsked();
/// Throws Error unless so many threads can be asked for.
void checkThreads(int threads);

} // namespace kiln
