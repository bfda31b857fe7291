// The device's vprintf: C's formats, with the arguments that a kernel has laid into memory.

#pragma once

#include "runtime/simulator/Program.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace kiln::simulator {

/// Where the values of a format come from.
struct PrintedValues {
  /// The next argument, of 4 or 8 bytes; nothing when it cannot be read.
  std::function<std::optional<uint64_t>(int bytes)> next;
  /// The text at an address, without its final zero; nothing when it cannot be read.
  std::function<std::optional<std::string>(uint64_t address)> text;
};

/// What `format` makes of its values, and how many it took. Conversions: `d i o u x X c p s a A e E f F g G` with C's
/// flags, widths, precisions and sizes; a conversion that is none stands as it is. Nothing when a value cannot be read.
struct Printed {
  std::string text;
  int values = 0;
};
std::optional<Printed> formatted(std::string_view format, const PrintedValues &values);

/// vprintf: the slots are the offsets of its result and its two parameters in the function's local memory.
void printFormatted(Warp &warp, const Step &step);

} // namespace kiln::simulator
