// Measures a row of launches.

#include "tools/kilnc/Measure.h"

#include <cmath>

namespace kiln::tools {

/// A simulator's seconds in a cycle: its clock counts cycles at 10 MHz.
static constexpr double cycle = 1e-7;

double Measure::operator()(const Executable &executable, Grid grid, const std::vector<Arg> &args, int times) {
  clock->mark();
  for (int i = 0; i < times; ++i)
    device.launch(executable, grid, args);
  clock->mark();
  const std::vector<double> marks = clock->take();
  device.synchronize();
  const double seconds = (marks[1] - marks[0]) / times;
  // Cycles are sums of instructions over schedulers, a thousandth at least; their rounding is that of the clock.
  return isExact() ? std::round(seconds / cycle * 1e3) * 1e-3 : seconds * 1e6;
}

} // namespace kiln::tools
