// Parses each conversion and passes it to the host's snprintf.

#include "runtime/simulator/Printf.h"

#include "runtime/simulator/Access.h"
#include "runtime/simulator/Cta.h"
#include "runtime/simulator/Lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>

namespace kiln::simulator {

/// The largest width and precision. Larger ones are clamped, so that a wrong number does not exhaust the memory.
static constexpr int widest = 4096;

namespace {
/// The parts of a conversion such as `%-08.3lld`.
struct Conversion {
  std::string flags;
  std::optional<int> width, precision;
  bool isLong = false; // 8 bytes
  std::string narrow;  // `h` or `hh`
  char letter = 0;
};

/// Reads a format from left to right.
class Formatter {
public:
  Formatter(std::string_view format, const PrintedValues &values) : format(format), values(values) {}

  std::optional<Printed> run() {
    while (at < format.size()) {
      const size_t percent = std::min(format.find('%', at), format.size());
      printed.text += format.substr(at, percent - at);
      at = percent;
      if (at < format.size() && !convert())
        return std::nullopt;
    }
    return printed;
  }

private:
  bool has(char c) const { return at < format.size() && format[at] == c; }
  std::optional<uint64_t> value(int bytes) {
    ++printed.values;
    return values.next(bytes);
  }

  /// A width or precision: digits, or `*` for the next value. False if the value cannot be read.
  bool number(std::optional<int> &number) {
    if (has('*')) {
      ++at;
      const std::optional<uint64_t> next = value(4);
      number = std::clamp(static_cast<int>(next.value_or(0)), -widest, widest);
      return next.has_value();
    }
    for (; at < format.size() && format[at] >= '0' && format[at] <= '9'; ++at)
      number = std::min(number.value_or(0) * 10 + (format[at] - '0'), widest);
    return true;
  }

  void size(Conversion &conversion) {
    for (; at < format.size(); ++at)
      if (format[at] == 'h')
        conversion.narrow += 'h';
      else if (std::string_view("lLqjzt").find(format[at]) != std::string_view::npos)
        conversion.isLong = true;
      else
        return;
  }

  /// The conversion that begins here. False if a value cannot be read.
  bool convert() {
    const size_t begin = at++;
    Conversion conversion;
    for (; at < format.size() && std::string_view("-+ #0").find(format[at]) != std::string_view::npos; ++at)
      conversion.flags += format[at];
    if (!number(conversion.width))
      return false;
    if (has('.')) {
      ++at;
      conversion.precision = 0;
      if (!number(conversion.precision))
        return false;
    }
    size(conversion);
    conversion.letter = at < format.size() ? format[at] : '\0';
    if (conversion.letter == '%' && at == begin + 1)
      printed.text += '%';
    else if (conversion.letter &&
             std::string_view("diouxXcpsaAeEfFgG").find(conversion.letter) != std::string_view::npos)
      return ++at, print(conversion);
    else // not a conversion of C: printed unchanged
      printed.text += format.substr(begin, at + 1 - begin);
    at = std::min(at + 1, format.size());
    return true;
  }

  template <class Value> void print(const Conversion &conversion, const char *size, Value value) {
    std::string text = fmt::format("%{}", conversion.flags);
    if (conversion.width)
      text += std::to_string(*conversion.width);
    if (conversion.precision && *conversion.precision >= 0)
      text += fmt::format(".{}", *conversion.precision);
    text += fmt::format("{}{}", size, conversion.letter);
    std::string field(static_cast<size_t>(std::max(0, std::snprintf(nullptr, 0, text.c_str(), value))) + 1, '\0');
    std::snprintf(field.data(), field.size(), text.c_str(), value);
    field.pop_back();
    printed.text += field;
  }

  bool print(const Conversion &conversion) {
    const bool isFloat = std::string_view("aAeEfFgG").find(conversion.letter) != std::string_view::npos;
    const bool isWide = isFloat || conversion.isLong || conversion.letter == 'p' || conversion.letter == 's';
    const std::optional<uint64_t> bits = value(isWide && conversion.letter != 'c' ? 8 : 4);
    if (!bits)
      return false;
    if (isFloat) {
      print(conversion, "", std::bit_cast<double>(*bits));
    } else if (conversion.letter == 's') {
      const std::optional<std::string> text = *bits ? values.text(*bits) : "(null)";
      if (!text)
        return false;
      print(conversion, "", text->c_str());
    } else if (conversion.letter == 'p') {
      print(conversion, "", reinterpret_cast<const void *>(*bits));
    } else if (conversion.letter == 'c' || !conversion.isLong) {
      print(conversion, conversion.narrow.c_str(), static_cast<int>(*bits));
    } else {
      print(conversion, "ll", static_cast<long long>(*bits));
    }
    return true;
  }

  const std::string_view format;
  const PrintedValues &values;
  size_t at = 0;
  Printed printed;
};
} // namespace

std::optional<Printed> formatted(std::string_view format, const PrintedValues &values) {
  return Formatter(format, values).run();
}

// --- vprintf -------------------------------------------------------------------------------------------------------

/// A text in a lane's memory; none if it cannot be read, which is reported.
static std::optional<std::string> textAt(Warp &warp, const Step &step, int lane, uint64_t address) {
  std::string text;
  for (;; ++address) {
    const char *const at = locate(warp, step, lane, ptx::Space::generic, address, 1, 1, AccessKind::read);
    if (!at)
      return std::nullopt;
    if (*at == '\0')
      return text;
    text += *at;
  }
}

/// The result of vprintf: the number of printed values, or −1 if the format or a value cannot be read.
static int printLane(Warp &warp, const Step &step, int lane, uint64_t format, uint64_t values) {
  if (!format)
    return -1;
  const std::optional<std::string> text = textAt(warp, step, lane, format);
  if (!text)
    return -1;
  const std::optional<Printed> printed =
      formatted(*text, {.next = [&](int bytes) -> std::optional<uint64_t> {
                          const auto size = static_cast<uint64_t>(bytes);
                          values = (values + size - 1) / size * size;
                          const char *const at =
                              locate(warp, step, lane, ptx::Space::generic, values, static_cast<uint32_t>(bytes),
                                     static_cast<uint32_t>(bytes), AccessKind::read);
                          uint64_t value = 0;
                          if (!at)
                            return std::nullopt;
                          std::memcpy(&value, at, size);
                          values += size;
                          return value;
                        },
                        .text = [&](uint64_t address) { return textAt(warp, step, lane, address); }});
  if (!printed)
    return -1;
  warp.cta.grid.console->print(printed->text);
  return printed->values;
}

void printFormatted(Warp &warp, const Step &step) {
  forEachLane(warp, [&](int lane) {
    const auto parameter = [&](uint32_t offset) {
      uint64_t value = 0;
      std::memcpy(&value, warp.localMemoryOf(lane) + warp.path.local + offset, sizeof(value));
      return value;
    };
    const int32_t result = printLane(warp, step, lane, parameter(step.slots[1]), parameter(step.slots[2]));
    std::memcpy(warp.localMemoryOf(lane) + warp.path.local + step.slots[0], &result, sizeof(result));
    std::memset(warp.localWritten(lane) + warp.path.local + step.slots[0], 1, sizeof(result));
  });
}

} // namespace kiln::simulator
