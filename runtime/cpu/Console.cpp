// What kernels call: failed checks and prints (see lowering/Abi.h).

#include "lowering/Abi.h"
#include "runtime/Streams.h"
#include "runtime/Tensor.h"
#include "runtime/cpu/CheckSink.h"

#include <fmt/format.h>

#include <cstring>

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
  // Within one program the first call is the first failure.
  if (first && (first->launch < launch || first->program <= program))
    return;
  first =
      Failure{fmt::format("check failed: {}, in kernel '{}' at {}, program ({}, {}, {}), element {}", message, kernel,
                          where, program % gridX, program / gridX % gridY, program / gridX / gridY, element),
              launch, program};
}

std::optional<std::string> CheckSink::take() {
  const std::lock_guard lock(mutex);
  if (!first)
    return std::nullopt;
  const std::string text = std::move(first->text);
  first.reset();
  return text;
}

/// Element `index` of dense memory; floats by the fewest digits that tell them from their neighbours.
static void appendElement(std::string &line, const char *data, Type type, int64_t index) {
  const char *const element = data + index * bytesOf(type);
  if (type == Type::i64) { // a double does not hold every one
    int64_t value;
    std::memcpy(&value, element, sizeof value);
    line += std::to_string(value);
    return;
  }
  const double value = toDoubles(element, type, 1)[0];
  if (type == Type::f64)
    line += fmt::format("{}", value);
  else if (isFloat(type))
    line += fmt::format("{}", static_cast<float>(value));
  else
    line += fmt::format("{:.0f}", value);
}

/// Elements in nested brackets, as `[[1, 2], [3, 4]]`.
static void appendElements(std::string &line, const char *data, Type type, const int64_t *extents, int64_t rank,
                           int64_t &next) {
  if (rank == 0)
    return appendElement(line, data, type, next++);
  line += '[';
  for (int64_t i = 0; i < *extents; ++i) {
    line += i ? ", " : "";
    appendElements(line, data, type, extents + 1, rank - 1, next);
  }
  line += ']';
}

} // namespace kiln

void kiln_check_failed(const char *message, const char *where, int64_t program, int64_t element) {
  if (kiln::current)
    kiln::current->fail(message, where, program, element);
}

void kiln_print(const char *label, int64_t program, int32_t type, int64_t rank, const int64_t *extents,
                const void *data) {
  std::string line = fmt::format("program {}: {} = ", program, label);
  int64_t next = 0;
  kiln::appendElements(line, static_cast<const char *>(data), static_cast<kiln::Type>(type), extents, rank, next);
  line += '\n';
  kiln::show(line);
}
