// The quick tier's turns together are the matrix of `tools/test --all`, and no turn is without a CPU, a GPU and the
// oracle.

#include "runtime/simulator/SimulatorDevice.h"
#include "test/devices.h"
#include "test/kernels/harness.h"

#include <set>

namespace kiln {
namespace {

using namespace kiln::test;

const char *const suites[] = {"Masks", "Products", "AttentionTest", "DecoderTest"};
/// After so many turns each suite has run on each GPU, each processor, and each pair of a GPU and a form.
constexpr uint64_t round = 12;

/// A machine with every distinguished processor, whatever this machine is.
const Machines many = {{"cpu", "cpu:x86-64-v4", "cpu:amx", "cpu:x86-64-v3"}, simulatorDevices()};

std::set<std::string> setOf(const std::vector<std::string> &names) { return {names.begin(), names.end()}; }

// The turns together cover the matrix. If a suite depends on a processor's or a GPU's instructions, the turns include
// all GPUs.
TEST(Tiers, TurnsTogetherAreTheMatrix) {
  for (const char *suite : suites)
    for (const Reach reach : {Reach::pipelines, Reach::processors, Reach::everything}) {
      std::set<std::string> met;
      for (uint64_t turn = 0; turn < round; ++turn)
        met.merge(setOf(chosenDevices(suite, reach, {.all = false, .turn = turn}, many)));
      std::set<std::string> all = setOf(chosenDevices(suite, reach, {.all = true}, many));
      EXPECT_TRUE(std::includes(met.begin(), met.end(), all.begin(), all.end())) << suite;
      if (reach != Reach::pipelines)
        all.merge(setOf(many.gpus));
      EXPECT_EQ(met, all) << suite;
    }
}

TEST(Tiers, EveryTurnHasACpuAGpuAndTheOracle) {
  for (const char *suite : suites)
    for (uint64_t turn = 0; turn < round; ++turn) {
      const std::vector<std::string> chosen =
          chosenDevices(suite, Reach::pipelines, {.all = false, .turn = turn}, many);
      ASSERT_EQ(chosen.size(), 3u);
      EXPECT_EQ(chosen[0], "cpu");
      EXPECT_TRUE(chosen[1].starts_with("simulator:")) << chosen[1];
      EXPECT_EQ(chosen[2], oracleDevice);
    }
}

TEST(Tiers, SuitesTakeDifferentGpusAtATurn) {
  std::set<std::string> gpus;
  for (const char *suite : suites)
    gpus.insert(chosenDevices(suite, Reach::pipelines, {}, many)[1]);
  EXPECT_GT(gpus.size(), 1u);
}

// Each of a test's many cases runs in one turn of as many as there are parts; `--all` runs all.
TEST(Tiers, TurnsTogetherTakeEveryCaseOnce) {
  for (const uint64_t of : {2, 4, 6})
    for (int64_t i = 0; i < 20; ++i) {
      uint64_t count = 0;
      for (uint64_t turn = 7; turn < 7 + of; ++turn)
        count += Tier{.all = false, .turn = turn}.takes(i, of) ? 1 : 0;
      EXPECT_EQ(count, 1u) << "case " << i << " of " << of;
      EXPECT_TRUE((Tier{.all = true, .turn = 7}.takes(i, of)));
    }
}

/// The names of a suite's machines in this turn, or in all.
std::set<std::string> machinesIn(const std::string &turn) {
  ::setenv("KILN_TEST_TURN", turn.c_str(), 1);
  std::set<std::string> names;
  for (const Machine &machine : productMachines("AttentionTest"))
    names.insert(testing::PrintToString(machine));
  return names;
}

// Kernels: each device's types and precisions, too.
TEST(Tiers, TurnsTogetherHaveEveryTypeOnEveryDevice) {
  if (std::getenv("KILN_TEST_DEVICE"))
    GTEST_SKIP() << "one device is asked for";
  std::set<std::string> met;
  for (uint64_t turn = 0; turn < round; ++turn) {
    const std::set<std::string> names = machinesIn(std::to_string(turn));
    EXPECT_TRUE(names.contains("cpu f32") && names.contains("cpu:generic f32"));
    // Two or three of cpu, the oracle, a GPU and a processor, in one or two types.
    EXPECT_LE(names.size(), 6u) << testing::PrintToString(names);
    met.insert(names.begin(), names.end());
  }
  for (const std::string &name : machinesIn("all"))
    if (!name.starts_with(oracleDevice)) // whose narrow types are the matrix's alone
      EXPECT_TRUE(met.contains(name)) << name;
}

} // namespace
} // namespace kiln
