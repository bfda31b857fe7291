// NVIDIA's GPUs as devices, "cuda:0" and on: what runtime/simulator/SimulatorDevice.h simulates.

#pragma once

#include "runtime/Device.h"

namespace kiln {

/// The names of GPUs that messages give as examples: how many there are the driver alone knows.
std::vector<std::string> cudaDevices();
/// The GPU called `name`; null for a name that is not "cuda:" and a number. Throws Error (device) when the driver or
/// the GPU is not there.
std::shared_ptr<Device> openCuda(const std::string &name);

/// How many GPUs the driver has. Throws Error (device) without a driver.
int cudaCount();

} // namespace kiln
