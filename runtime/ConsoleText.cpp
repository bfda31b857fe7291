// Formats failed checks and printed tiles.

#include "runtime/ConsoleText.h"

#include "runtime/Tensor.h"

#include <fmt/format.h>

#include <cstring>

namespace kiln {

std::string failedCheckText(const std::string &message, const std::string &where, const std::string &kernel,
                            const Grid &grid, int64_t program, int64_t element) {
  return fmt::format("check failed: {}, in kernel '{}' at {}, program ({}, {}, {}), element {}", message, kernel, where,
                     program % grid[0], program / grid[0] % grid[1], program / grid[0] / grid[1], element);
}

/// Element `index` of dense memory; floats with the fewest digits that identify them.
static void appendElement(std::string &line, const char *data, Type type, int64_t index) {
  const char *const element = data + index * bytesOf(type);
  if (type == Type::i64) { // a double cannot hold every i64
    int64_t value;
    std::memcpy(&value, element, sizeof value);
    line += std::to_string(value);
    return;
  }
  if (type == Type::u64) {
    uint64_t value;
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

/// Elements in nested brackets, such as `[[1, 2], [3, 4]]`.
static void appendElements(std::string &line, const char *data, Type type, const Shape &extents, size_t dimension,
                           int64_t &next) {
  if (dimension == extents.size())
    return appendElement(line, data, type, next++);
  line += '[';
  for (int64_t i = 0; i < extents[dimension]; ++i) {
    line += i ? ", " : "";
    appendElements(line, data, type, extents, dimension + 1, next);
  }
  line += ']';
}

std::string printedLine(const std::string &label, int64_t program, Type type, const Shape &extents, const char *data) {
  std::string line = fmt::format("program {}: {} = ", program, label);
  int64_t next = 0;
  appendElements(line, data, type, extents, 0, next);
  return line + '\n';
}

} // namespace kiln
