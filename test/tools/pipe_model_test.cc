// The pipe model on loops that can be counted by hand.

#include "test/paths.h"
#include "tools/kiln-bench/pipe_model.h"
#include "tools/kiln-bench/static_rows.h"

#include <cmath>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using kiln::test::sourcePath;

namespace kiln::bench::test {

static const MachineRates &a100() { return machines()[0]; }
static const MachineRates &h100() { return machines()[1]; }

/// An iteration of a product of 128 × 128 × 64 in bf16 with tiles of wm × wn a warp. Each warp reads its rows of A and
/// columns of B from shared memory, to which asynchronous copies write all operands.
static Work productRound(int wm, int wn) {
  const int warps = 128 * 128 / (wm * wn), slices = 64 / 16;
  Work round;
  round.mmaOperations = 2.0 * 128 * 128 * 64;
  round.mmaType = "bf16";
  round.counts[Class::mma] = warps * slices * (wm / 16) * (wn / 8);
  round.counts[Class::ldmatrix] = warps * slices * (wm + wn) / 16;
  const double copied = 2 * 128 * 64 * 2;
  round.wavefronts = 4 * round.counts[Class::ldmatrix] + copied / 128;
  return round;
}

// Four warps of 64 × 64: the tensor cores bind, and shared memory is used for three quarters of the time.
TEST(PipeModelTest, ProductOfFourWarps) {
  const Pipes pipes = pipesOf(a100(), productRound(64, 64), 0);
  EXPECT_EQ(pipes.clocks[Pipes::tensor], 1024);
  EXPECT_EQ(pipes.clocks[Pipes::shared], 512 + 256);
  EXPECT_EQ(pipes.binding(), Pipes::tensor);
}

// Eight warps of 64 × 32 read more: a tie.
TEST(PipeModelTest, ProductOfEightWarps) {
  const Pipes pipes = pipesOf(a100(), productRound(64, 32), 0);
  EXPECT_EQ(pipes.clocks[Pipes::tensor], 1024);
  EXPECT_EQ(pipes.clocks[Pipes::shared], 768 + 256);
}

// Attention's forward pass, 128 queries and 64 keys of 64 numbers, 4 warps: 64 scores a thread, each an exponential and
// 5.5 float instructions.
TEST(PipeModelTest, Attention) {
  Work round;
  round.mmaOperations = 2 * 2.0 * 128 * 64 * 64;
  round.mmaType = "bf16";
  round.counts[Class::mufu] = 64 * 4;
  round.counts[Class::fp] = 64 * 4 * 5.5;
  round.counts[Class::ldmatrix] = 4 * 32;
  round.wavefronts = 4 * 32 * 4 + 2 * 64 * 64 * 2 / 128;
  const Pipes pipes = pipesOf(a100(), round, 0);
  EXPECT_EQ(pipes.clocks[Pipes::tensor], 1024);
  EXPECT_EQ(pipes.clocks[Pipes::mufu], 512);
  EXPECT_EQ(pipes.clocks[Pipes::fp], 704);
  EXPECT_EQ(pipes.clocks[Pipes::shared], 640);
  EXPECT_EQ(pipes.binding(), Pipes::tensor);
}

// Other types at their rates: tf32 half, integers of 8 bits twice that of bf16.
TEST(PipeModelTest, TypesOfProducts) {
  Work work;
  work.mmaOperations = 4096;
  const auto clocks = [&](const char *type) {
    work.mmaType = type;
    return pipesOf(a100(), work, 0).clocks[Pipes::tensor];
  };
  EXPECT_EQ(clocks("bf16"), 2);
  EXPECT_EQ(clocks("f16"), 2);
  EXPECT_EQ(clocks("tf32"), 4);
  EXPECT_EQ(clocks("s8"), 1);
}

// Products of warpgroups have the rate of wgmma on a machine that has it, and other products the rate of mma.
TEST(PipeModelTest, ProductsOfGroups) {
  Work work;
  work.mmaOperations = 3 * 4096;
  work.mmaType = "bf16";
  const double byWarps = pipesOf(h100(), work, 0).clocks[Pipes::tensor];
  EXPECT_DOUBLE_EQ(byWarps, 3 * 6.26 / 4);
  work.groupOperations = 2 * 4096;
  EXPECT_DOUBLE_EQ(pipesOf(h100(), work, 0).clocks[Pipes::tensor], 2 + 6.26 / 4);
  EXPECT_EQ(pipesOf(a100(), work, 0).clocks[Pipes::tensor], 6); // which has none
}

// Issue slots, shuffles and the cache have their pipes.
TEST(PipeModelTest, OtherPipes) {
  Work work;
  work.counts[Class::integer] = 60;
  work.counts[Class::predicate] = 20;
  work.counts[Class::shuffle] = 20;
  const Pipes pipes = pipesOf(a100(), work, 640);
  EXPECT_EQ(pipes.clocks[Pipes::integer], 40);
  EXPECT_EQ(pipes.clocks[Pipes::shared], 20);
  EXPECT_EQ(pipes.clocks[Pipes::issue], 25);
  EXPECT_EQ(pipes.clocks[Pipes::l2], 10);
}

// An access issued n iterations ahead has the time of n iterations; only the rest of its latency is exposed.
TEST(PipeModelTest, Exposed) {
  EXPECT_EQ(exposedLatency(262, 0, 100), 262);
  EXPECT_EQ(exposedLatency(262, 1, 100), 162);
  EXPECT_EQ(exposedLatency(262, 2, 200), 0);
}

// Each limit of an A100's SM: warps get registers in units of 256, and shared memory in units of 128 bytes plus a
// kilobyte for the system.
TEST(PipeModelTest, Occupancy) {
  const GpuFacts gpu;
  EXPECT_EQ(occupancyOf(gpu, 255, 0, 256).programs, 1);
  EXPECT_EQ(occupancyOf(gpu, 128, 0, 256).programs, 2);
  EXPECT_EQ(occupancyOf(gpu, 129, 0, 256).programs, 1); // 136 registers a thread are taken
  EXPECT_STREQ(occupancyOf(gpu, 128, 0, 256).limit, "registers");
  EXPECT_EQ(occupancyOf(gpu, 32, 0, 256).warps, 64);
  EXPECT_STREQ(occupancyOf(gpu, 32, 0, 256).limit, "warps");
  EXPECT_EQ(occupancyOf(gpu, 16, 0, 32).programs, 32);
  EXPECT_EQ(occupancyOf(gpu, 32, 81 << 10, 128).programs, 2); // twice 82 KB is all there is
  EXPECT_EQ(occupancyOf(gpu, 32, (81 << 10) + 1, 128).programs, 1);
  EXPECT_STREQ(occupancyOf(gpu, 32, 81 << 10, 128).limit, "shared memory");
}

/// Programs of a million clocks of the tensor cores each, one an SM.
static LaunchWork heavyLaunch(double programs) {
  LaunchWork launch;
  launch.program.mmaOperations = 2048e6;
  launch.program.mmaType = "bf16";
  launch.programs = programs;
  return launch;
}

// One program more than there are SMs takes twice as long.
TEST(PipeModelTest, Waves) {
  const double all = predict(a100(), heavyLaunch(108)).seconds, more = predict(a100(), heavyLaunch(109)).seconds;
  EXPECT_NEAR((more - a100().start) / (all - a100().start), 2, 1e-9);
  EXPECT_NEAR(all, 1e6 / a100().clock, 0.01 * all);
  EXPECT_DOUBLE_EQ(predict(a100(), heavyLaunch(109)).waves, 109.0 / 108);
}

// Concurrent programs share pipes, and hide latencies that each alone would wait for.
TEST(PipeModelTest, Residents) {
  LaunchWork launch = heavyLaunch(216);
  launch.round = launch.program;
  launch.round.mmaOperations /= 1000;
  launch.rounds = 1000; // of a thousand clocks, each exposed for longer than that
  launch.loads = true;
  launch.roundsAhead = -1;
  const double apart = predict(a100(), launch).seconds;
  launch.residents = 2;
  const double together = predict(a100(), launch).seconds;
  EXPECT_LT(together, 0.7 * apart);
  EXPECT_GE(together, 2e6 / a100().clock);
}

// A launch takes no less than its memory.
TEST(PipeModelTest, Memory) {
  LaunchWork launch = heavyLaunch(1);
  launch.memoryBytes = a100().memoryRate;
  const Prediction prediction = predict(a100(), launch);
  EXPECT_STREQ(prediction.binds, "memory");
  EXPECT_DOUBLE_EQ(prediction.seconds, 1 + a100().start);
}

// Data that L2 keeps between launches are not read from memory.
TEST(PipeModelTest, KeptData) {
  LaunchWork launch = heavyLaunch(1);
  launch.program.mmaOperations = 0;
  launch.memoryBytes = a100().l2Kept;
  EXPECT_STRNE(predict(a100(), launch).binds, "memory");
  launch.memoryBytes += 1;
  EXPECT_STREQ(predict(a100(), launch).binds, "memory");
}

/// Programs whose loop has 10 iterations of 4096 clocks of wgmma, one program an SM, and as many clocks outside it.
static LaunchWork loopLaunch() {
  LaunchWork launch;
  launch.round.mmaOperations = launch.round.groupOperations = 4096.0 * 4096;
  launch.round.mmaType = "bf16";
  launch.rounds = 10;
  launch.program.add(launch.round, launch.rounds);
  launch.program.counts[Class::integer] = 4096 * h100().issued;
  launch.programs = h100().sms;
  return launch;
}
static double clocksOf(const LaunchWork &launch) {
  return (predict(h100(), launch).seconds - h100().start) * h100().productClock;
}

// The prologue and the epilogue of a program overlap with concurrent programs, but not with its own loop.
TEST(PipeModelTest, OutsideTheLoop) {
  LaunchWork launch = loopLaunch();
  const double outside = 4096 * h100().issued * 32 / h100().integer; // the integer pipe is slower than the issue
  EXPECT_NEAR(clocksOf(launch), 10 * 4096 + outside + h100().memoryLatency, 1);
  EXPECT_STREQ(predict(h100(), launch).binds, "tensor");
  launch.programs *= 4;
  launch.residents = 4;
  EXPECT_NEAR(clocksOf(launch), 4 * 10 * 4096, 1);
}

// Warps that wait for all their products let the tensor cores drain, and their other instructions follow.
TEST(PipeModelTest, Drains) {
  LaunchWork launch = loopLaunch();
  launch.round.counts[Class::fp] = 400; // 100 clocks of issue
  launch.program.counts[Class::fp] = 4000;
  const double overlapped = clocksOf(launch);
  launch.round.drains = 2;
  launch.round.drainedOperations = launch.round.mmaOperations / 2;
  EXPECT_EQ(clocksOf(launch), overlapped); // less than the other products take
  launch.round.drainedOperations = launch.round.mmaOperations;
  EXPECT_NEAR(clocksOf(launch), overlapped + 10 * (100 + 2 * h100().drain), 1);
  EXPECT_STREQ(predict(h100(), launch).binds, "waits");
  EXPECT_EQ(predict(a100(), launch).iteration, predict(a100(), loopLaunch()).iteration); // it has no wgmma
}

// Loads outside the loop are waited for, and all SMs load at the same time.
TEST(PipeModelTest, LateLoads) {
  LaunchWork launch = loopLaunch();
  const double before = clocksOf(launch);
  launch.lateBytes = 1e6;
  const double transfer = 1e6 * h100().sms / h100().memoryRate * h100().productClock;
  EXPECT_NEAR(clocksOf(launch), before + transfer + h100().memoryLatency, 1);
}

// Only the order counts, and equal numbers share their ranks.
TEST(PipeModelTest, RankCorrelation) {
  EXPECT_DOUBLE_EQ(rankCorrelation({1, 2, 3, 4}, {10, 20, 40, 1000}), 1);
  EXPECT_DOUBLE_EQ(rankCorrelation({1, 2, 3, 4}, {4, 3, 2, 1}), -1);
  EXPECT_DOUBLE_EQ(rankCorrelation({1, 2, 3, 4}, {1, 3, 2, 4}), 0.8); // 1 − 6 · 2 / (4 · 15)
  EXPECT_NEAR(rankCorrelation({1, 1, 2}, {1, 1, 2}), 1, 1e-12);
  EXPECT_EQ(rankCorrelation({1, 2}, {5, 5}), 0);
}

// --- Measured times --------------------------------------------------------------------------------------------------

// The pipe model compared with times measured on a GPU. The file has the work of each launch, as
// `kiln-bench static --json` writes it, so that no compiler and no GPU is needed.

static nlohmann::json readMeasured() {
  std::ifstream stream(sourcePath("test/tools/inputs/measured_h100.json"));
  return nlohmann::json::parse(stream);
}

static const MachineRates &machineNamed(const std::string &name) {
  for (const MachineRates &machine : machines())
    if (machine.name == name)
      return machine;
  throw std::runtime_error("expected a machine of the pipe model, but got '" + name + "'");
}

// The predicted time is within 15 % of the measured one, except for kernels that the file explains.
TEST(MeasuredTest, PredictionsAreWithinFifteenPercent) {
  constexpr double tolerance = 0.15;
  const nlohmann::json file = readMeasured();
  const MachineRates &machine = machineNamed(file.at("machine"));
  ASSERT_GE(file.at("kernels").size(), 15u);
  size_t near = 0;
  for (const nlohmann::json &kernel : file.at("kernels")) {
    const double predicted = predict(machine, launchWorkOf(kernel.at("launch"))).seconds * 1e6;
    const double ratio = predicted / kernel.at("measured_us").get<double>();
    const bool isNear = std::abs(ratio - 1) <= tolerance;
    EXPECT_EQ(isNear, !kernel.contains("off_because"))
        << kernel.at("kernel") << ": predicted " << predicted << " µs, " << ratio << " of the measured time";
    near += isNear;
  }
  EXPECT_GE(near, file.at("kernels").size() - 2);
}

// Writing and reading give equal work.
TEST(MeasuredTest, TheWorkOfALaunchIsWrittenWhole) {
  for (const nlohmann::json &kernel : readMeasured().at("kernels"))
    EXPECT_EQ(nlohmann::json(jsonOf(launchWorkOf(kernel.at("launch")))), kernel.at("launch")) << kernel.at("kernel");
}

} // namespace kiln::bench::test
