// Sorts lines by launch and program.

#include "runtime/GpuConsole.h"

#include "runtime/ConsoleText.h"
#include "runtime/Streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

namespace kiln {

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
static std::vector<Line> linesOf(const abi::GpuConsole &console, bool &lost) {
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
  for (const Line &line : linesOf(console, lost)) {
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
