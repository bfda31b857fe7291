// Measures a sequence of launches.

#include "tools/kilnc/Measure.h"

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

} // namespace kiln::tools
