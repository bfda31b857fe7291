// Preparing a plan: its launches' code is compiled before anything runs, several kernels at a time.

#include "runtime/Compile.h"
#include "runtime/Tensor.h"
#include "test/expect_error.h"
#include "test/runtime/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

using namespace kiln;
using namespace kiln::test;

namespace {

class Preparing : public testing::Test {
protected:
  std::shared_ptr<Device> device = Device::open("cpu:generic");
  Tensor x{device, f32, {16}}, y{device, f32, {16}}, matrix{device, f32, {16, 16}};
  // A kernel of this test alone: nothing of it is in memory.
  const Kernel fresh = kernel("fresh", addInPlace, {field("block", &AddConfig::block)});

  void SetUp() override { setCompileThreads(4); }
  void TearDown() override { freeze(false); }

  Launch adding(int block) const { return {&fresh, "block=" + std::to_string(block), {1, 1, 1}, {x.ref(), y.ref()}}; }
  /// Does not compile: the kernel indexes `matrix` with one coordinate.
  Launch failing() const { return {&fresh, "", {1, 1, 1}, {matrix.ref(), y.ref()}}; }

  static int64_t made() {
    const CompileStatistics statistics = compileStatistics();
    return statistics.compiled + statistics.fromDisk;
  }
};

// Every specialisation of a plan is compiled once, for any number of launches and threads; none is missing.
TEST_F(Preparing, MakesEachSpecialisationOnceAndLeavesNone) {
  Plan plan;
  for (int repeat = 0; repeat < 3; ++repeat)
    for (int block = 1; block <= 6; ++block)
      plan.launches.push_back(adding(block));
  const int64_t before = made();
  prepare(*device, plan);
  EXPECT_EQ(made() - before, 6);
  freeze();
  EXPECT_NO_THROW(run(*device, plan));
}

// Extents that a trace reads decide which launches share it: row_sums makes the row length static.
TEST_F(Preparing, SharesASpecialisationBetweenLaunchesThatDifferInWhatIsNotAskedFor) {
  const Kernel sums = kernel("fresh_row_sums", rowSums);
  Tensor tall(device, f32, {32, 16}), wide(device, f32, {16, 48}), out(device, f32, {32});
  Plan plan;
  for (const Tensor *in : {&matrix, &tall, &wide, &matrix})
    plan.launches.push_back({&sums, "", {16, 1, 1}, {in->ref(), out.ref()}});
  const int64_t before = made();
  prepare(*device, plan);
  EXPECT_EQ(made() - before, 2);
}

// The error of the first failing launch is thrown, even if a later one fails earlier. The first launch needs too much
// scratch memory, which shows at the end of its compilation; the second has a mistake.
TEST_F(Preparing, ThrowsTheFirstErrorInTheOrderOfTheLaunches) {
  Plan plan;
  plan.launches = {adding(11), adding(1 << 24), adding(12), failing()};
  for (int attempt = 0; attempt < 8; ++attempt) {
    const std::string text = errorOf([&] { prepare(*device, plan); });
    EXPECT_NE(text.find("scratch"), std::string::npos) << text;
  }
  std::swap(plan.launches[1], plan.launches[3]);
  const std::string text = errorOf([&] { prepare(*device, plan); });
  EXPECT_NE(text.find("kernels.h:"), std::string::npos) << text;
  EXPECT_EQ(text.find("scratch"), std::string::npos) << text;
}

// A plan with a launch that does not compile changes nothing.
TEST_F(Preparing, RunsNothingWhenALaunchDoesNotCompile) {
  x.uploadFloats(std::vector<float>(16, 1));
  y.uploadFloats(std::vector<float>(16, 2));
  Plan plan;
  plan.launches = {adding(16), failing()};
  errorOf([&] { run(*device, plan); });
  EXPECT_EQ(x.downloadFloats(), std::vector<float>(16, 1));
}

// Several threads may prepare plans that overlap; each ends with everything it needs, made once.
TEST_F(Preparing, ServesManyThreadsAtOnce) {
  Plan plan;
  for (int block = 21; block <= 26; ++block)
    plan.launches.push_back(adding(block));
  Plan reversed = plan;
  std::reverse(reversed.launches.begin(), reversed.launches.end());
  const int64_t before = made();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] { EXPECT_NO_THROW(prepare(*device, i % 2 ? plan : reversed)); });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(made() - before, 6);
}

// A prepared plan needs neither the caches nor the plan, and runs any number of times.
TEST_F(Preparing, APreparedPlanLooksNothingUp) {
  x.uploadFloats(std::vector<float>(16, 1));
  y.uploadFloats(std::vector<float>(16, 2));
  PreparedPlan ready;
  ready.run(); // nothing
  ready = prepare(*device, {.launches = {adding(16), adding(8)}});
  forgetCompiled();
  const CompileStatistics before = compileStatistics();
  ready.run();
  ready.run();
  const CompileStatistics after = compileStatistics();
  EXPECT_EQ(before.compiled + before.fromDisk + before.fromMemory, after.compiled + after.fromDisk + after.fromMemory);
  std::vector<float> want(8, 9); // y is added to all of x by one launch, and to its first half by another, twice
  want.resize(16, 5);
  EXPECT_EQ(x.downloadFloats(), want);
}

// Nothing may be compiled after freeze(), by prepare() neither.
TEST_F(Preparing, RefusesToCompileWhenFrozen) {
  freeze();
  Plan plan;
  plan.launches = {adding(31)};
  EXPECT_EQ(errorOf([&] { prepare(*device, plan); }),
            "kernel 'fresh' requires compilation, which freeze() forbids; new arguments: f32[16], f32[16] with "
            "config 'block=31'");
}

// prepare() uses the workspace's address like run(), because it is part of the specialisation.
TEST_F(Preparing, TellsOfAWorkspaceThatIsTooSmall) {
  Plan plan;
  plan.launches = {{&fresh, "", {1, 1, 1}, {Arg::workspace(0, f32, {16}), x.ref()}}};
  plan.workspaceBytes = 64;
  EXPECT_EQ(errorOf([&] { prepare(*device, plan); }), "expected a workspace of 64 bytes, but got 0");
}

} // namespace
