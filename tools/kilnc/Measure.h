// Times of launches: measured by their device's own clock (runtime/Meters.h), or predicted by the pipe model
// (tools/kiln-bench/pipe_model.h).

#pragma once

#include "runtime/Meters.h"
#include "runtime/simulator/SimulatorDevice.h"
#include "tools/kiln-bench/pipe_model.h"

#include <optional>

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

/// The rates of the GPU for which a device compiles: an A100 for sm_80, an H100 for sm_90a. Null for other devices.
const bench::MachineRates *ratesFor(const Device &device);

/// Microseconds of the last launch of a simulator, which has counted it.
double predictedTimeOfLast(const bench::MachineRates &machine, const SimulatorDevice &simulator, const Launch &launch,
                           const Signature &signature);

/// Microseconds of a launch that does not run: some of its programs are simulated, on a copy of its arguments. Nothing
/// if the arguments have more than 1 GiB, and if the programs cannot run alone.
std::optional<double> predictedTime(const bench::MachineRates &machine, Device &device, const Launch &launch);

} // namespace kiln::tools
