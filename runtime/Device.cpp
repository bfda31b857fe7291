// Opens devices by name, and checks what all of them are launched with.

#include "runtime/Device.h"
#include "runtime/Arguments.h"
#include "runtime/cpu/CpuDevice.h"
#include "runtime/simulator/SimulatorDevice.h"

#include <fmt/format.h>

namespace kiln {

const std::vector<std::string> &Device::names() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names = cpuDevices();
    for (std::string &name : simulatorDevices())
      names.push_back(std::move(name));
    return names;
  }();
  return all;
}

std::shared_ptr<Device> Device::open(const std::string &name) {
  if (std::shared_ptr<Device> device = openCpu(name))
    return device;
  if (std::shared_ptr<Device> device = openSimulator(name))
    return device;
  throw Error(fmt::format("expected a device out of {}, but got '{}'", fmt::join(names(), ", "), name));
}

void Device::launch(const Executable &executable, Grid grid, const std::vector<Arg> &args, void *workspace) {
  if (executable.device() != name())
    throw Error(fmt::format("kernel '{}': expected an executable of device '{}', but got one of '{}'",
                            executable.kernel(), name(), executable.device()));
  launch(executable, pack(executable.kernel(), executable.signature(), grid, args, workspace).data());
}

} // namespace kiln
