// The choice of devices for tests. New targets are added to these lists.

#include "test/devices.h"

#include "lowering/Backend.h"
#include "runtime/Device.h"
#include "runtime/simulator/SimulatorDevice.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>

namespace kiln::test {

std::string stubDriver(const std::string &engine) {
  const auto programs = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return programs.parent_path() / "lib" / ("libcuda_stub_" + engine + ".so");
}

Tier Tier::asked() {
  const char *turn = std::getenv("KILN_TEST_TURN");
  return {turn && std::string_view(turn) == "all", turn ? std::strtoull(turn, nullptr, 10) : 0};
}

uint64_t Tier::at(std::string_view suite) const {
  uint64_t hash = 0xcbf29ce484222325; // FNV-1a
  for (const char letter : suite)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return hash % 1000 + turn;
}

static std::vector<std::string> processorsHere() {
  std::vector<std::string> candidates = {"cpu"};
  if (__builtin_cpu_supports("avx512vl")) {
    candidates.emplace_back("cpu:x86-64-v4"); // has no units for narrow products, as "cpu" may have
    candidates.emplace_back("cpu:amx");       // emulates them where the processor has no AMX
    candidates.emplace_back("cpu:x86-64-v3"); // where there is no AVX-512, "cpu" has its instructions
  }
  std::vector<std::string> distinct, keys;
  for (const std::string &name : candidates) {
    const std::string key = Device::open(name)->backend().key();
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      distinct.push_back(name);
    keys.push_back(key);
  }
  return distinct;
}

const Machines &Machines::here() {
  static const Machines all = {processorsHere(), simulatorDevices()};
  return all;
}

/// The GPUs whose code is made by different passes: one that multiplies by warps, and one by warpgroups.
static const std::vector<std::string> usualGpus = {"simulator:sm_80", "simulator:sm_90a"};

std::vector<std::string> chosenDevices(std::string_view suite, Reach reach, const Tier &tier,
                                       const Machines &machines) {
  std::vector<std::string> chosen = {machines.processors.at(0)};
  const auto add = [&](const std::vector<std::string> &names) {
    chosen.insert(chosen.end(), names.begin(), names.end());
  };
  const std::vector<std::string> others(machines.processors.begin() + 1, machines.processors.end());
  if (tier.all) {
    if (reach != Reach::pipelines)
      add(others);
    add(reach == Reach::everything ? machines.gpus : usualGpus);
  } else {
    const uint64_t at = tier.at(suite);
    if (reach != Reach::pipelines && !others.empty())
      add({others[at % others.size()]});
    const std::vector<std::string> &gpus = reach == Reach::pipelines ? usualGpus : machines.gpus;
    add({gpus[at % gpus.size()]});
  }
  add({oracleDevice});
  return chosen;
}

std::vector<std::string> testDevices(std::string_view suite, Reach reach) {
  if (const char *name = std::getenv("KILN_TEST_DEVICE"))
    return {name};
  return chosenDevices(suite, reach, Tier::asked(), Machines::here());
}

std::vector<std::string> testDevicesAndDriver(std::string_view suite, Reach reach) {
  std::vector<std::string> devices = testDevices(suite, reach);
  if (!std::getenv("KILN_TEST_DEVICE")) {
    ::setenv("KILN_CUDA_DRIVER", stubDriver().c_str(), /*overwrite=*/0);
    ::setenv("CUDA_PATH", "", /*overwrite=*/0); // the simulator takes no cubins
    devices.insert(devices.end() - 1, "cuda:0");
  }
  return devices;
}

std::string firstDevice() {
  const char *name = std::getenv("KILN_TEST_DEVICE");
  return name ? name : "cpu";
}

std::string deviceLabel(std::string name) {
  std::replace_if(name.begin(), name.end(), [](unsigned char letter) { return !std::isalnum(letter); }, '_');
  return name;
}

} // namespace kiln::test
