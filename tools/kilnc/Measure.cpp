// Measures a sequence of launches; counts a launch and applies the pipe model.

#include "tools/kilnc/Measure.h"

#include "runtime/Compile.h"
#include "runtime/Facts.h"
#include "runtime/simulator/Memory.h"
#include "tools/kiln-bench/assembly.h"
#include "tools/kiln-bench/sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

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

// --- Predictions ----------------------------------------------------------------------------------------------------

const bench::MachineRates *ratesFor(const Device &device) {
  static const std::map<std::string, std::string> names = {{"sm_80", "A100"}, {"sm_90a", "H100"}};
  const auto name = names.find(bench::architectureOf(device.backend().name()));
  const auto all = bench::machines();
  const auto found = std::find_if(all.begin(), all.end(), [&](const bench::MachineRates &machine) {
    return name != names.end() && machine.name == name->second;
  });
  return found == all.end() ? nullptr : &*found;
}

static double timeOf(const bench::MachineRates &machine, const Device &device, const Launch &launch,
                     const bench::Sample &sample) {
  return device.target().visit([](const CpuFacts &) { return 0.0; },
                               [&](const GpuFacts &gpu) {
                                 const bench::Occupancy occupancy = bench::occupancyOf(gpu, std::nullopt, sample);
                                 const bench::LaunchWork work = bench::launchWorkOf(launch, sample, nullptr, occupancy);
                                 return bench::predict(machine, work).seconds * 1e6;
                               });
}

double predictedTimeOfLast(const bench::MachineRates &machine, const SimulatorDevice &simulator, const Launch &launch,
                           const Signature &signature) {
  const double programs = bench::programsOf(launch);
  if (programs == 0)
    return 0;
  const LaunchRecord &record = simulator.lastRecord();
  return timeOf(machine, simulator, launch,
                bench::takeSample(signature, *record.program, *record.metrics, record.sharedBytes, programs));
}

std::optional<double> predictedTime(const bench::MachineRates &machine, Device &device, const Launch &launch) {
  constexpr int programs = 4;
  constexpr int64_t maxBytes = int64_t{1} << 30; // bytes
  simulator::Memory memory;
  Launch copy = launch;
  int64_t bytes = 0;
  for (Arg &arg : copy.args) {
    if (arg.kind != Arg::Kind::tensor || arg.ref.count() == 0)
      continue;
    const Range range = rangeOf(arg, nullptr);
    const auto size = static_cast<int64_t>(range.high - range.low);
    if ((bytes += size) > maxBytes)
      return std::nullopt;
    // At the same distance from a multiple of 256, on which the code may depend.
    const uintptr_t skew = static_cast<uintptr_t>(range.low) % 256;
    char *const place = static_cast<char *>(memory.allocate(size + static_cast<int64_t>(skew))) + skew;
    device.download(place, reinterpret_cast<const void *>(range.low), size);
    arg.ref.data = place + (reinterpret_cast<uintptr_t>(arg.ref.data) - static_cast<uintptr_t>(range.low));
  }
  try {
    const std::string ptx = bench::ptxOf(codeOf(device, copy));
    return timeOf(machine, device, copy, bench::takeSample(device, copy, ptx, memory, nullptr, programs));
  } catch (const Error &) {
    return std::nullopt; // such as a program that waits for another one
  }
}

} // namespace kiln::tools
