// Opens devices by name.

#include "runtime/Device.h"
#include "runtime/cpu/CpuDevice.h"

namespace kiln {

std::shared_ptr<Device> Device::open(const std::string &name) {
  if (std::shared_ptr<Device> device = openCpu(name))
    return device;
  throw Error("expected a device 'cpu', 'cpu:generic', 'cpu:x86-64-v3' or 'cpu:x86-64-v4', but got '" + name + "'");
}

} // namespace kiln
