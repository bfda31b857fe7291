// Measures launches by their device's own clock (runtime/Meters.h).

#pragma once

#include "runtime/Device.h"
#include "runtime/Meters.h"

namespace kiln::tools {

class Measure {
public:
  explicit Measure(Device &device) : device(device), clock(clockOf(device)) {}

  /// Microseconds of a launch, as the mean of `times` launches in a row; on a simulator cycles, in which all schedulers
  /// issue its instructions. Throws Error for a check that fails.
  double operator()(const Executable &executable, Grid grid, const std::vector<Arg> &args, int times = 1);
  /// Whether one measurement says all: cycles are counted.
  bool isExact() const { return !clock->isTime(); }
  /// `us` or `cycles`.
  const char *unit() const { return isExact() ? "cycles" : "us"; }

private:
  Device &device;
  const std::unique_ptr<DeviceClock> clock;
};

/// How measurements of one thing differ.
struct Spread {
  double median = 0;        // of an even number of values, the mean of the two in the middle
  double low = 0, high = 0; // low: 20 % of the values are less; high: 80 %
};
/// The spread of one value or more.
Spread spreadOf(std::vector<double> values);

/// A measured number with so many decimals, or with as many as two significant digits need: `31.2`, `0.0042`.
std::string measuredText(double value, int decimals);

} // namespace kiln::tools
