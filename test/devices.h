// The devices that tests run on: this list, or the one device that KILN_TEST_DEVICE names. A new target joins it here.

#pragma once

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace kiln::test {

/// The oracle, which the others are compared with.
inline const std::string oracleDevice = "cpu:generic";

/// A driver that was built beside the tests, in whose GPU the simulator runs the kernels; or the one that does nothing.
inline std::string stubDriver(const std::string &engine = "simulating") {
  const auto programs = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return programs.parent_path() / "lib" / ("libcuda_stub_" + engine + ".so");
}

/// One device of each pipeline that there is; with `everyProcessor` also those that differ in the processor alone, for
/// tests of what the processor's instructions decide. The fastest comes first, the oracle last.
inline std::vector<std::string> testDevices(bool everyProcessor = false) {
  if (const char *name = std::getenv("KILN_TEST_DEVICE"))
    return {name};
  std::vector<std::string> devices = {"cpu"};
  if (everyProcessor && __builtin_cpu_supports("avx512vl")) {
    devices.emplace_back("cpu:x86-64-v4"); // has no units for narrow products, as "cpu" may have
    devices.emplace_back("cpu:amx");       // emulates them where the processor has no AMX
  }
  if (everyProcessor)
    devices.emplace_back("cpu:x86-64-v3");
  devices.emplace_back("simulator:sm_80");
  ::setenv("KILN_CUDA_DRIVER", stubDriver().c_str(), /*overwrite=*/0);
  ::setenv("KILN_NVJITLINK", "", /*overwrite=*/0); // the simulator takes no cubins
  devices.emplace_back("cuda:0");
  devices.emplace_back(oracleDevice);
  return devices;
}

/// `cpu:generic` as a part of a test's name.
inline std::string deviceLabel(std::string name) {
  std::replace_if(name.begin(), name.end(), [](unsigned char letter) { return !std::isalnum(letter); }, '_');
  return name;
}

/// A test that runs on each of them; its parameter is the device's name.
class DeviceTest : public testing::TestWithParam<std::string> {};

} // namespace kiln::test

#define KILN_ON_THESE(suite, devices)                                                                                  \
  INSTANTIATE_TEST_SUITE_P(On, suite, testing::ValuesIn(devices),                                                      \
                           [](const auto &info) { return kiln::test::deviceLabel(info.param); })
/// Instantiates a suite, whose parameter is a device's name, for one device of each pipeline.
#define KILN_ON_DEVICES(suite) KILN_ON_THESE(suite, kiln::test::testDevices())
/// The same for every processor, too.
#define KILN_ON_EVERY_DEVICE(suite) KILN_ON_THESE(suite, kiln::test::testDevices(true))
