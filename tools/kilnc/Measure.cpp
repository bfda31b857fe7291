// Measures a sequence of launches.

#include "tools/kilnc/Measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kiln::tools {

/// Seconds per cycle of a simulator, whose clock has 10 MHz.
static constexpr double cycle = 1e-7;

double Measure::operator()(const Executable &executable, Grid grid, const std::vector<Arg> &args, int times) {
  clock->mark();
  for (int i = 0; i < times; ++i)
    device.launch(executable, grid, args);
  clock->mark();
  const std::vector<double> marks = clock->take();
  device.synchronize();
  const double seconds = (marks[1] - marks[0]) / times;
  // Cycles are instructions divided by schedulers, at least a thousandth, rounded by the clock.
  return isExact() ? std::round(seconds / cycle * 1e3) * 1e-3 : seconds * 1e6;
}

Spread spreadOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t count = values.size();
  const auto at = [&](double part) { return values[static_cast<size_t>(part * static_cast<double>(count))]; };
  return {(values[(count - 1) / 2] + values[count / 2]) / 2, at(0.2), at(0.8)};
}

std::string measuredText(double value, int decimals) {
  const int place = value > 0 && std::isfinite(value) ? static_cast<int>(std::floor(std::log10(value))) : 0;
  return fmt::format("{:.{}f}", value, std::clamp(1 - place, decimals, 15));
}

} // namespace kiln::tools
