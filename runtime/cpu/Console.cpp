// Functions that kernels call for failed checks and prints (lowering/Abi.h).

#include "lowering/Abi.h"
#include "runtime/ConsoleText.h"
#include "runtime/Streams.h"
#include "runtime/cpu/CheckSink.h"

namespace kiln {

static thread_local CheckSink *current = nullptr;

CheckSink::Scope::Scope(CheckSink &sink) { current = &sink; }
CheckSink::Scope::~Scope() { current = nullptr; }

void CheckSink::beginLaunch(const std::string &name, int64_t x, int64_t y) {
  const std::lock_guard lock(mutex);
  kernel = name;
  gridX = x;
  gridY = y;
  ++launch;
}

void CheckSink::fail(const char *message, const char *where, int64_t program, int64_t element) {
  const std::lock_guard lock(mutex);
  // Within a program, the first call is the first failure.
  if (first && (first->launch < launch || first->program <= program))
    return;
  first = Failure{failedCheckText(message, where, kernel, {gridX, gridY, 1}, program, element), launch, program};
}

std::optional<std::string> CheckSink::take() {
  const std::lock_guard lock(mutex);
  if (!first)
    return std::nullopt;
  const std::string text = std::move(first->text);
  first.reset();
  return text;
}

} // namespace kiln

void kiln_check_failed(const char *message, const char *where, int64_t program, int64_t element) {
  if (kiln::current)
    kiln::current->fail(message, where, program, element);
}

void kiln_print(const char *label, int64_t program, int32_t type, int64_t rank, const int64_t *extents,
                const void *data) {
  kiln::show(kiln::printedLine(label, program, static_cast<kiln::Type>(type), {extents, extents + rank},
                               static_cast<const char *>(data)));
}
