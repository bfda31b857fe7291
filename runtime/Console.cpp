// Formats failed checks and printed tiles; sorts the lines of a GPU by launch and program.

#include "runtime/Console.h"

#include "runtime/Streams.h"
#include "runtime/Tensor.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <iterator>
#include <vector>

namespace kiln {

std::string failedCheckText(const std::string &message, const std::string &where, const std::string &kernel,
                            const Grid &grid, int64_t program, int64_t element) {
  return fmt::format("check failed: {}, in kernel '{}' at {}, program ({}, {}, {}), element {}", message, kernel, where,
                     program % grid[0], program / grid[0] % grid[1], program / grid[0] / grid[1], element);
}

/// The 4-bit float in the low half of a code.
static float realOfHalfByte(int code) {
  static constexpr float sizes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return code & 8 ? -sizes[code & 7] : sizes[code & 7];
}

/// Element `index` of dense memory; floats with the fewest digits that identify them.
static void appendElement(std::string &line, const char *data, Type type, int64_t index) {
  const char *const element = data + index * bytesOf(type);
  if (isPair(type)) {
    line += fmt::format("({}, {})", realOfHalfByte(*element), realOfHalfByte(*element >> 4));
    return;
  }
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

namespace {
struct Line {
  abi::GpuLine head;
  const char *elements;
};
} // namespace

/// Whether a line has the length of its tile. It is checked because any kernel can write to this memory.
static bool isWhole(const abi::GpuLine &head) {
  if (head.rank > std::size(head.extents) || head.type >= std::size(allTypes))
    return false;
  int64_t bytes = bytesOf(static_cast<Type>(head.type));
  for (uint32_t axis = 0; axis < head.rank; ++axis)
    if (head.extents[axis] < 0 || __builtin_mul_overflow(bytes, head.extents[axis], &bytes))
      return false;
  return head.bytes >= sizeof head && bytes <= static_cast<int64_t>(head.bytes - sizeof head);
}

/// All complete lines; those without room are counted in `lost`.
static std::vector<Line> readLines(const abi::GpuConsole &console, bool &lost) {
  std::vector<Line> lines;
  uint64_t at = 0;
  lost = console.printed > abi::GpuConsole::lineBytes;
  while (at + sizeof(abi::GpuLine) <= std::min(console.printed, abi::GpuConsole::lineBytes)) {
    Line line;
    std::memcpy(&line.head, console.lines + at, sizeof line.head);
    if (line.head.bytes == 0 || at + line.head.bytes > abi::GpuConsole::lineBytes)
      break; // no room left
    if (!isWhole(line.head))
      break; // overwritten by a kernel
    line.elements = console.lines + at + sizeof line.head;
    lines.push_back(line);
    at += line.head.bytes;
  }
  std::stable_sort(lines.begin(), lines.end(), [](const Line &a, const Line &b) {
    return std::pair(a.head.launch, a.head.program) < std::pair(b.head.launch, b.head.program);
  });
  return lines;
}

std::optional<FailedCheck> readConsole(const abi::GpuConsole &console, const std::string &kernel,
                                       const std::function<std::string(uint32_t number)> &textOf,
                                       const std::function<Grid(int64_t launch)> &gridOf) {
  bool lost = false;
  for (const Line &line : readLines(console, lost)) {
    const Shape extents(line.head.extents, line.head.extents + line.head.rank);
    show(printedLine(textOf(line.head.label), static_cast<int64_t>(line.head.program),
                     static_cast<Type>(line.head.type), extents, line.elements));
  }
  if (lost)
    say(fmt::format(
        "kernel '{}': expected prints of at most {} bytes before they are read, but got {}: some are lost\n", kernel,
        abi::GpuConsole::lineBytes, console.printed));
  if (console.failedLaunch == 0)
    return std::nullopt;
  const auto launch = static_cast<int64_t>(console.failedLaunch);
  return FailedCheck{launch,
                     failedCheckText(textOf(console.message), textOf(console.where), kernel, gridOf(launch),
                                     static_cast<int64_t>(console.program), static_cast<int64_t>(console.element))};
}

} // namespace kiln
