// The CPU as a device: memory is the host's, programs run on a team of threads.

#pragma once

#include "runtime/Device.h"

namespace kiln {

/// The names of CPU devices.
std::vector<std::string> cpuDevices();
/// The CPU device called `name`, or null when there is none; throws Error when this machine cannot run it.
std::shared_ptr<Device> openCpu(const std::string &name);

} // namespace kiln
