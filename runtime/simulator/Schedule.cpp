// The table of settings.

#include "runtime/simulator/Schedule.h"

#include "dialect/dsl/Types.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <sstream>

namespace kiln::simulator {

/// Parses a number. Throws Error unless it is at most `most`.
template <class Number> static Number numberUpTo(Number most, const char *name, const std::string &value) {
  Number number = 0;
  const char *const end = value.data() + value.size();
  const auto [stop, failure] = std::from_chars(value.data(), end, number);
  if (failure != std::errc() || stop != end || number < 0 || number > most)
    throw Error(fmt::format("expected {} to be a number from 0 to {}, but got '{}'", name, most, value));
  return number;
}

static std::string listed(std::span<const char *const> names) {
  std::string text;
  for (const char *name : names)
    text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

/// The enumerator whose name in `names` is the value.
template <class Enum>
static Enum oneOf(std::span<const char *const> names, const char *name, const std::string &value) {
  for (size_t i = 0; i < names.size(); ++i)
    if (value == names[i])
      return static_cast<Enum>(i);
  throw Error(fmt::format("expected {} to be one of {}, but got '{}'", name, listed(names), value));
}

std::span<const Setting> settings() {
  static constexpr Setting all[] = {
      {"order", "schedule of blocks and warps: forward, reverse or random",
       [](Schedule &schedule, const std::string &value) {
         schedule.order = oneOf<Order>(std::array{"forward", "reverse", "random"}, "order", value);
       }},
      {"delivery", "completion of asynchronous copies: late, early or random",
       [](Schedule &schedule, const std::string &value) {
         schedule.delivery = oneOf<Delivery>(std::array{"late", "early", "random"}, "delivery", value);
       }},
      {"seed", "seed of random orders",
       [](Schedule &schedule, const std::string &value) { schedule.seed = numberUpTo(~uint64_t{0}, "seed", value); }},
      {"check", "checks to make: all, -race, bounds,alignment, ...",
       [](Schedule &schedule, const std::string &value) { schedule.checks = Checks::named(value); }},
      {"ulp", "error of approximate f32 instructions, in multiples of the PTX ISA's bound",
       [](Schedule &schedule, const std::string &value) { schedule.errorTimes = numberUpTo(1 << 20, "ulp", value); }},
      {"steps", "maximum instructions of a warp (0: no limit)",
       [](Schedule &schedule, const std::string &value) {
         schedule.maxSteps = numberUpTo(int64_t{1} << 62, "steps", value);
       }},
  };
  return all;
}

Schedule Schedule::named(const std::string &text) {
  Schedule schedule;
  std::stringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const auto setting =
        std::find_if(settings().begin(), settings().end(), [&](const Setting &each) { return name == each.name; });
    if (setting == settings().end() || equals == std::string::npos) {
      std::vector<const char *> names;
      for (const Setting &each : settings())
        names.push_back(each.name);
      throw Error(fmt::format("expected settings such as order=reverse out of {}, but got '{}'", listed(names), word));
    }
    setting->set(schedule, word.substr(equals + 1));
  }
  return schedule;
}

} // namespace kiln::simulator
