// Reads the number of threads.

#include "runtime/Threads.h"

#include "dialect/dsl/Types.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <thread>

namespace kiln {

static int coresOfProcess() {
  cpu_set_t cores;
  return sched_getaffinity(0, sizeof cores, &cores) == 0
             ? CPU_COUNT(&cores)
             : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

/// More threads than any machine has are taken as a typing error; creating them would take minutes.
static constexpr int maxThreads = 4096;

int threadsAsked() {
  const char *text = std::getenv("KILN_THREADS");
  if (!text || !*text)
    return coresOfProcess();
  int threads = 0;
  const char *end = text + std::strlen(text);
  const auto [stop, failure] = std::from_chars(text, end, threads);
  if (failure != std::errc() || stop != end || threads < 1 || threads > maxThreads)
    throw Error(
        fmt::format("expected KILN_THREADS to be a number of threads from 1 to {}, but got '{}'", maxThreads, text));
  return threads;
}

void checkThreads(int threads) {
  if (threads < 1 || threads > maxThreads)
    throw Error(fmt::format("expected a number of threads from 1 to {}, but got {}", maxThreads, threads));
}

} // namespace kiln
