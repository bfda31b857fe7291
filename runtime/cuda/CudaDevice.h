// NVIDIA's GPUs as devices, "cuda:0" and on. runtime/simulator/SimulatorDevice.h simulates them.

#pragma once

#include "runtime/Device.h"

namespace kiln {

/// Names of GPUs as examples in messages; only the driver knows their number.
std::vector<std::string> cudaDevices();
/// The GPU with the name `name`; null unless it is "cuda:" and a number. Throws Error (device) without the driver or
/// the GPU.
std::shared_ptr<Device> openCuda(const std::string &name);

/// The number of GPUs. Throws Error (device) without a driver.
int cudaCount();

} // namespace kiln
