// The devices that tests run on, chosen here for all suites: the matrix of `tools/test --all`, the part of it that
// `tools/test` uses, or the one device that KILN_TEST_DEVICE names.

#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::test {

/// The oracle, which the others are compared with.
inline const std::string oracleDevice = "cpu:generic";

/// A stub driver built with the tests: its GPU runs kernels in the simulator, or does nothing.
std::string stubDriver(const std::string &engine = "simulating");

/// How much of the matrix is run. The quick tier (all = false) uses other devices in each turn; `tools/test` counts
/// turns by commits.
struct Tier {
  bool all = false;
  uint64_t turn = 0;

  /// The value of KILN_TEST_TURN: `all`, or a turn of the quick tier, by default the first.
  static Tier asked();
  /// Whether case i of a test's many cases is run: all, or in the quick tier one of every `of`, others in each turn.
  bool takes(int64_t i, uint64_t of = 6) const { return all || (static_cast<uint64_t>(i) + turn) % of == 0; }
  /// A number for this suite in this turn: different suites use different devices in the same turn.
  uint64_t at(std::string_view suite) const;
};

/// The scope of a suite: the compiler's pipelines, each on one device; also choices by the instructions of a processor
/// or a GPU; or code that every device has of its own.
enum class Reach { pipelines, processors, everything };

/// The machines to choose from.
struct Machines {
  /// The fastest first; no two that compile to the same code.
  std::vector<std::string> processors;
  /// A simulator for each architecture.
  std::vector<std::string> gpus;

  static const Machines &here();
};

/// The devices of a suite. Every choice has "cpu" first, a GPU, and the oracle last. The quick tier has one GPU: out of
/// two for pipelines, and out of all otherwise. If the suite's scope is wider than pipelines, it has one processor
/// besides "cpu". Both change from turn to turn. The matrix has the two GPUs, or all if the scope is all.
std::vector<std::string> chosenDevices(std::string_view suite, Reach reach, const Tier &tier, const Machines &machines);

/// The devices of a suite in this run.
std::vector<std::string> testDevices(std::string_view suite, Reach reach = Reach::pipelines);

/// Those of a suite, and "cuda:0", a GPU by NVIDIA's driver, for the runtime's code for it. A stub replaces the driver.
std::vector<std::string> testDevicesAndDriver(std::string_view suite, Reach reach = Reach::pipelines);

/// The device of tests that need only one: the CPU, or KILN_TEST_DEVICE.
std::string firstDevice();

/// `cpu:generic` as a part of a test's name.
std::string deviceLabel(std::string name);

/// A test that runs on each of them; its parameter is the device's name.
class DeviceTest : public testing::TestWithParam<std::string> {};

} // namespace kiln::test

#define KILN_ON_THESE(suite, devices)                                                                                  \
  INSTANTIATE_TEST_SUITE_P(On, suite, testing::ValuesIn(devices),                                                      \
                           [](const auto &info) { return kiln::test::deviceLabel(info.param); })
/// Instantiates a suite, whose parameter is a device's name, for devices of each pipeline.
#define KILN_ON_DEVICES(suite) KILN_ON_THESE(suite, kiln::test::testDevices(#suite))
/// Those of a suite, and processors that differ in their instructions alone.
#define KILN_ON_PROCESSORS(suite) KILN_ON_THESE(suite, kiln::test::testDevices(#suite, kiln::test::Reach::processors))
/// Those of a suite, and every GPU architecture.
#define KILN_ON_EVERYTHING(suite) KILN_ON_THESE(suite, kiln::test::testDevices(#suite, kiln::test::Reach::everything))
/// For devices of each pipeline, and a GPU by NVIDIA's driver.
#define KILN_ON_DEVICES_AND_DRIVER(suite) KILN_ON_THESE(suite, kiln::test::testDevicesAndDriver(#suite))
