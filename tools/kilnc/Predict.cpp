// Counts a launch and applies the pipe model.

#include "tools/kilnc/Predict.h"

#include "runtime/Compile.h"
#include "runtime/Facts.h"
#include "runtime/simulator/Memory.h"
#include "tools/kiln-bench/assembly.h"
#include "tools/kiln-bench/launch_work.h"

#include <algorithm>
#include <map>

namespace kiln::tools {

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
                bench::sampleOf(signature, *record.program, *record.metrics, record.sharedBytes, programs));
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
    return timeOf(machine, device, copy, bench::sampleOf(device, copy, ptx, memory, nullptr, programs));
  } catch (const Error &) {
    return std::nullopt; // such as a program that waits for another one
  }
}

} // namespace kiln::tools
