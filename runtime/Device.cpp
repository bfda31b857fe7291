// Opens devices by name, and checks launches on behalf of all devices.

#include "runtime/Device.h"
#include "dialect/dsl/Nearest.h"
#include "runtime/Arguments.h"
#include "runtime/cpu/CpuDevice.h"
#include "runtime/cuda/CudaDevice.h"
#include "runtime/simulator/SimulatorDevice.h"

#include <fmt/format.h>

#include <mutex>
#include <set>

namespace kiln {

const std::string *memoryDevice(const std::string &name) {
  static std::mutex mutex;
  static auto *const all = new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return &*all->insert(name.starts_with("cpu:") ? "cpu" : name).first;
}

const std::vector<std::string> &Device::names() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names = cpuDevices();
    for (const std::vector<std::string> &more : {simulatorDevices(), cudaDevices()})
      names.insert(names.end(), more.begin(), more.end());
    return names;
  }();
  return all;
}

std::shared_ptr<Device> Device::open(const std::string &name) {
  if (std::shared_ptr<Device> device = openCpu(name))
    return device;
  if (std::shared_ptr<Device> device = openSimulator(name))
    return device;
  if (std::shared_ptr<Device> device = openCuda(name))
    return device;
  const std::optional<std::string> meant = nearest(name, names());
  // That of a GPU, which is simulated or not.
  const bool isArchitecture =
      meant && meant->starts_with("simulator:") && name.find(':') == name.npos && !meant->starts_with(name);
  throw Error(unknownName("device", name, names(),
                          isArchitecture ? fmt::format("; did you mean '{}' or 'cuda:0'?", *meant)
                                         : didYouMean(name, names())));
}

namespace {
/// Launches one by one.
class PlainList : public LaunchList {
public:
  PlainList(Device &device, std::vector<Ready> launches) : device(device), launches(std::move(launches)) {}
  void run() override {
    for (const Ready &launch : launches)
      device.launch(*launch.executable, launch.block.data());
  }

private:
  Device &device;
  const std::vector<Ready> launches;
};
} // namespace

std::unique_ptr<LaunchList> Device::list(std::vector<LaunchList::Ready> launches) {
  return std::make_unique<PlainList>(*this, std::move(launches));
}

void Device::launch(const Executable &executable, Grid grid, const std::vector<Arg> &args, void *workspace) {
  if (executable.device() != name())
    throw Error(fmt::format("kernel '{}': expected an executable of device '{}', but got one of '{}'",
                            executable.kernel(), name(), executable.device()));
  launch(executable, pack(executable, grid, args, workspace).data());
}

} // namespace kiln
