// Random programs: a fixed set of them agrees with the oracle. The generator, the comparison and the shrinking of
// programs keep their promises.

#include "runtime/simulator/SimulatorDevice.h"
#include "test/devices.h"
#include "test/fuzz/run.h"
#include "test/fuzz/verbs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

using namespace kiln;
using namespace kiln::fuzz;

namespace {

constexpr int parts = 4, programsOfPart = 84;

class Programs : public testing::TestWithParam<int> {};

/// Devices except the oracle, opened.
std::vector<std::shared_ptr<Device>> open(const std::vector<std::string> &names) {
  std::vector<std::shared_ptr<Device>> devices;
  for (const std::string &name : names)
    if (name != test::oracleDevice)
      devices.push_back(Device::open(name));
  return devices;
}

/// The processors and the GPUs, used in turn; or the one device that KILN_TEST_DEVICE names.
std::array<std::vector<std::string>, 2> kindsOfDevices() {
  const test::Machines &all = test::Machines::here();
  const char *only = std::getenv("KILN_TEST_DEVICE");
  if (!only)
    return {all.processors, all.gpus};
  std::array<std::vector<std::string>, 2> kinds;
  kinds[std::string_view(only).starts_with("cpu") ? 0 : 1] = {only};
  return kinds;
}

// Every program has the oracle's results on a CPU and on a GPU, which vary. It leaves memory outside of its views
// unchanged.
TEST_P(Programs, AgreeWithTheOracle) {
  const auto oracle = Device::open(test::oracleDevice);
  const auto [cpus, gpus] = kindsOfDevices();
  const std::vector<std::vector<std::shared_ptr<Device>>> kinds = {open(cpus), open(gpus)};
  for (int number = GetParam(); number < parts * programsOfPart; number += parts) {
    const Program program = generate(2026, number);
    const Outcome want = run(oracle, program);
    for (const std::vector<std::shared_ptr<Device>> &devices : kinds) {
      if (devices.empty())
        continue;
      const auto &device = devices[static_cast<size_t>(number / parts) % devices.size()];
      EXPECT_EQ(difference(program, want, run(device, program)), "")
          << listing(program) << "kiln-fuzz --seed 2026 --program " << number << " --devices " << device->name();
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Fuzz, Programs, testing::Range(0, parts));

// vmap of a program has the results of a launch for each example: on the CPUs in turn, and sometimes on a GPU.
TEST_P(Programs, BatchesAreAsALoopOfLaunches) {
  constexpr int batches = 24;
  const auto [cpus, gpus] = kindsOfDevices();
  const std::vector<std::shared_ptr<Device>> onCpus = open(cpus), onGpus = open(gpus);
  int compared = 0;
  for (int number = GetParam(); number < parts * batches; number += parts) {
    const Program program = generate(2027, number);
    const auto turn = static_cast<size_t>(number / parts);
    const auto &devices = onCpus.empty() || (turn % 3 == 2 && !onGpus.empty()) ? onGpus : onCpus;
    if (devices.empty())
      continue;
    const auto &device = devices[turn / 3 % devices.size()];
    const auto found = compareBatch(program, device);
    EXPECT_EQ(found.value_or(""), "") << listing(program) << "kiln-fuzz --vmap --seed 2027 --program " << number
                                      << " --devices " << device->name();
    compared += found ? 1 : 0;
  }
  if (!onCpus.empty() || !onGpus.empty()) {
    EXPECT_GT(compared, batches / 3);
  }
}

/// x + 1 from one view to another, both of four i32 within a buffer of six.
Program addOne() {
  Program program;
  Buffer buffer{.type = i32, .elements = 6, .facts = anything(i32), .written = true};
  program.buffers = {buffer, buffer};
  program.windows = {{.buffer = 0, .offset = 1, .extents = {4}, .strides = {1}},
                     {.buffer = 1, .offset = 1, .extents = {4}, .strides = {1}}};
  program.values = 2;
  const Operand zero = Operand::number(int64_t(0)), one = Operand::number(int64_t(1));
  program.ops = {
      {.verb = Verb::load, .result = 0, .type = i32, .shape = {4}, .window = 0, .offsets = {zero}},
      {.verb = Verb::elementwise, .result = 1, .type = i32, .shape = {4}, .operands = {Operand::of(0), one}},
      {.verb = Verb::store, .type = i32, .shape = {4}, .operands = {Operand::of(1)}, .window = 1, .offsets = {zero}}};
  return program;
}

// A program whose views have no room for another dimension has no batch.
TEST(Batch, NeedsADimension) {
  const auto device = Device::open("cpu");
  Program program = addOne();
  EXPECT_EQ(compareBatch(program, device), "");
  program.windows[1].extents = {4, 1, 1, 1, 1};
  program.windows[1].strides = {1, 1, 1, 1, 1};
  program.ops[2].offsets.resize(5, Operand::number(int64_t(0)));
  program.ops[2].shape = {4, 1, 1, 1, 1};
  EXPECT_EQ(compareBatch(program, device), std::nullopt);
}

// The generator draws every operation and option of the language.
TEST(Generate, DrawsTheWholeLanguage) {
  std::string drawn;
  for (int number = 0; number < 1500; ++number)
    drawn += listing(generate(1, number));
  std::vector<std::string> texts = {".select(",
                                    ".slice(",
                                    "assume(",
                                    "stochastic_round(",
                                    "Rounding::nearest",
                                    "Rounding::toward_zero",
                                    "Rounding::down",
                                    "Rounding::up",
                                    "(std::vector<View> p0",
                                    "(std::optional<View> p0",
                                    "[1];\n",
                                    "View v0 = *p0;",
                                    "none, ",
                                    "[], ",
                                    ".mask = ",
                                    ".padding = ",
                                    "atomic_load(",
                                    "atomic_store(",
                                    "bitcast(",
                                    "pack(",
                                    "unpack(",
                                    "softmax(",
                                    "atomic_compare_exchange(",
                                    "Order::acquire",
                                    "Order::acq_rel",
                                    "Order::release",
                                    "Order::relaxed",
                                    "Scope::block",
                                    "Scope::system",
                                    "gather(",
                                    "histogram(",
                                    "Cache::evict_first",
                                    "Cache::evict_last",
                                    "extract(",
                                    "split(",
                                    "join(",
                                    "interleave(",
                                    "concat(",
                                    "pad(",
                                    "insert(",
                                    "topk(",
                                    ".unroll = ",
                                    "dot_scaled(",
                                    ", Scales(), t",
                                    ", Scales())",
                                    "random_normal(",
                                    "Precision::tf32)",
                                    "Precision::tf32x3)",
                                    "Precision::bf16x3)"};
  for (const char *name : atomicNames)
    texts.push_back(std::string("atomic_") + name + "(");
  for (const char *name : leaveNames)
    texts.push_back(std::string(name) + "(");
  texts.emplace_back("repeat_while(");
  for (const Elementwise &verb : elementwise()) // as far as the first operand
    texts.push_back(std::string(verb.text).substr(0, std::string(verb.text).find('$')));
  for (const Reduction &scan : scans())
    texts.push_back(std::string(scan.text).substr(0, std::string(scan.text).find('$')));
  for (const Reduction &reduction : reductions())
    texts.push_back(std::string(reduction.text).substr(0, std::string(reduction.text).find('$')));
  for (const std::string &text : texts)
    EXPECT_NE(drawn.find(text), std::string::npos) << text;
}

// A program is a function of its seed and its number.
TEST(Generate, FollowsFromSeedAndNumber) {
  EXPECT_EQ(listing(generate(3, 5)), listing(generate(3, 5)));
  EXPECT_NE(listing(generate(3, 5)), listing(generate(3, 6)));
  EXPECT_NE(listing(generate(3, 5)), listing(generate(4, 5)));
}

// An element that differs is named, whether a view reaches it or none does.
TEST(Difference, SeesElementsInsideAndOutsideOfViews) {
  const Program program = addOne();
  const Outcome want = run(Device::open("cpu:generic"), program);
  ASSERT_EQ(want.error, "");
  EXPECT_EQ(difference(program, want, want), "");
  for (const int element : {0, 1, 4, 5}) {
    Outcome got = want;
    got.buffers[1][element * 4] ^= 1;
    EXPECT_NE(difference(program, want, got).find("element " + std::to_string(element) + " of buffer 1"),
              std::string::npos);
    EXPECT_NE(difference(program, got, got).empty(), element == 0 || element == 5) << "what no view reaches must stay";
  }
}

// Floats may differ within the facts of their buffer and no further; NaN is NaN.
TEST(Difference, KeepsToTheBound) {
  Program program = addOne();
  Buffer &buffer = program.buffers[1];
  buffer.type = f32;
  buffer.facts = {.bound = infinity, .whole = false, .relative = 0x1p-20};
  const auto outcome = [&](float value) {
    Outcome result{.buffers = {std::vector<char>(24), std::vector<char>(24)}};
    std::copy_n(reinterpret_cast<const char *>(&value), 4, result.buffers[1].data() + 4);
    return result;
  };
  const auto says = [&](float want, float got) {
    return difference(program, outcome(want), outcome(got)).find("element 1 of buffer 1") != std::string::npos;
  };
  EXPECT_FALSE(says(8, 8 * (1 + 0x1p-21F)));
  EXPECT_TRUE(says(8, 8 * (1 + 0x1p-19F)));
  EXPECT_FALSE(says(NAN, -NAN));
  EXPECT_TRUE(says(NAN, 8));
  EXPECT_TRUE(says(INFINITY, 3e38F));
}

// Shrinking keeps only operations that the failure needs.
TEST(Shrink, LeavesTheOperationsThatMatter) {
  const auto counts = [](const Program &program) { return listing(program).find("histogram(") != std::string::npos; };
  const auto statements = [](const Program &program) { return std::ranges::count(listing(program), ';'); };
  int number = 0;
  while (!counts(generate(9, number)) || statements(generate(9, number)) < 40)
    ++number;
  const Program small = shrink(generate(9, number), counts);
  EXPECT_TRUE(counts(small));
  EXPECT_LT(statements(small), 15) << listing(small);
  EXPECT_LE(small.windows.size(), 2U);
}

// Sums of whole numbers that the type of the sum holds are exact in any order; others have the bound of the language.
TEST(Facts, SumsAreExactWhileTheyFit) {
  EXPECT_TRUE(sumOf(f32, wholeNumbers(1024), 1 << 13)->exact());
  EXPECT_FALSE(sumOf(f32, wholeNumbers(1024), 1 << 15)->exact());
  EXPECT_FALSE(sumOf(f32, {.bound = 1, .whole = false}, 8)->exact());
  EXPECT_TRUE(sumOf(bf16, wholeNumbers(4), 1000)->exact()); // summed in f32
  EXPECT_FALSE(sumOf(f32, anything(f32), 2).has_value());
  EXPECT_TRUE(productOf(f16, wholeNumbers(8), wholeNumbers(8), wholeNumbers(0), 1024)->exact());
}

} // namespace
