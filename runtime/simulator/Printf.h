// The device's vprintf: the formats of C, with the arguments that a kernel has stored in memory. And its output.

#pragma once

#include "runtime/simulator/Program.h"

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace kiln::simulator {

/// The source of the values for a format.
struct PrintedValues {
  /// The next argument, of 4 or 8 bytes; nothing if it cannot be read.
  std::function<std::optional<uint64_t>(int bytes)> next;
  /// The text at an address without its final zero; nothing if it cannot be read.
  std::function<std::optional<std::string>(uint64_t address)> text;
};

/// The formatted text, and the number of values used. Conversions: `d i o u x X c p s a A e E f F g G` with C's flags,
/// widths, precisions and sizes. An invalid conversion is copied unchanged. Nothing if a value cannot be read.
struct Printed {
  std::string text;
  int values = 0;
};
std::optional<Printed> formatted(std::string_view format, const PrintedValues &values);

/// vprintf: the slots are the offsets of its result and its two parameters in the function's local memory.
void printFormatted(Warp &warp, const Step &step);

/// Receives the output of the threads of a launch, one printf at a time. Thread-safe.
class Console {
public:
  using Sink = std::function<void(std::string_view text)>;
  explicit Console(Sink sink) : sink(std::move(sink)) {}

  void print(std::string_view text) {
    const std::lock_guard lock(mutex);
    sink(text);
  }

private:
  const Sink sink;
  std::mutex mutex;
};

} // namespace kiln::simulator
