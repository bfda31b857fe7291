// Error messages of the driver's results.

#include "runtime/cuda/Connection.h"

#include "runtime/Streams.h"

#include <fmt/format.h>

namespace kiln::cuda {

/// Whether the context is unusable after this result: a kernel's fault or timeout.
static bool endsContext(Result result) {
  const int number = static_cast<int>(result);
  return number == 700 || number == 702 || number == 710 || (number >= 714 && number <= 719);
}

Error Connection::failure(Result result, const char *call, const std::string &wanted) const {
  if (endsContext(result))
    faulty = true;
  return Error(fmt::format("device '{}': expected {}, but {} returned {}", device, wanted, call, driver.textOf(result)),
               Fault::device);
}

void Connection::sayNotGivenBack(Result result, const char *call) const noexcept {
  if (!faulty && !endsContext(result) && result != Result::deinitialized)
    say(fmt::format("device '{}': {} returned {}\n", device, call, driver.textOf(result)));
}

} // namespace kiln::cuda
