// What kernels call: failed checks and prints (see lowering/Abi.h).

#include "lowering/Abi.h"
#include "runtime/Tensor.h"
#include "runtime/cpu/CheckSink.h"

#include <fmt/format.h>

#include <cstdio>

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
  first = Failure{fmt::format("check failed: {}, in kernel '{}' at {}, program ({}, {}, {}), element {}", message, kernel,
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

/// Elements in nested brackets, as `[[1, 2], [3, 4]]`.
static void appendElements(std::string &line, const std::vector<double> &values, Type type, const int64_t *extents,
                           int64_t rank, size_t &next) {
  if (rank == 0) {
    const double value = values[next++]; // floats by the fewest digits that tell them from their neighbours
    if (type == Type::f64)
      fmt::format_to(std::back_inserter(line), "{}", value);
    else if (isFloat(type))
      fmt::format_to(std::back_inserter(line), "{}", static_cast<float>(value));
    else
      fmt::format_to(std::back_inserter(line), "{:.0f}", value);
    return;
  }
  line += '[';
  for (int64_t i = 0; i < *extents; ++i) {
    line += i ? ", " : "";
    appendElements(line, values, type, extents + 1, rank - 1, next);
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
  int64_t count = 1;
  for (int64_t i = 0; i < rank; ++i)
    count *= extents[i];
  const kiln::Type element = static_cast<kiln::Type>(type);
  std::string line = fmt::format("program {}: {} = ", program, label);
  size_t next = 0;
  kiln::appendElements(line, kiln::toDoubles(data, element, count), element, extents, rank, next);
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stdout); // one call, so that lines of several threads do not mix
}
