// Times of launches by the pipe model (tools/kiln-bench/pipe_model.h), for tuning.

#pragma once

#include "runtime/Device.h"
#include "runtime/simulator/SimulatorDevice.h"
#include "tools/kiln-bench/pipe_model.h"

#include <optional>

namespace kiln::tools {

/// The rates of the GPU for which a device compiles: an A100 for sm_80, an H100 for sm_90a. Null for other devices.
const bench::MachineRates *ratesFor(const Device &device);

/// Microseconds of the last launch of a simulator, which has counted it.
double predictedTimeOfLast(const bench::MachineRates &machine, const SimulatorDevice &simulator, const Launch &launch,
                           const Signature &signature);

/// Microseconds of a launch that does not run: some of its programs are simulated, on a copy of its arguments. Nothing
/// if the arguments have more than 1 GiB, and if the programs cannot run alone.
std::optional<double> predictedTime(const bench::MachineRates &machine, Device &device, const Launch &launch);

} // namespace kiln::tools
