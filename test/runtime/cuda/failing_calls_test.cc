// Each driver call fails once, at each point where a program that uses everything makes it. The result is an error
// that names the call, or a line on standard error if a destructor made it. Nothing leaks, and the process
// continues.

#include "runtime/Compile.h"
#include "runtime/Tensor.h"
#include "test/runtime/cuda/stub_driver.h"
#include "test/runtime/kernels.h"

#include <fmt/format.h>

#include <map>
#include <sstream>

namespace kiln::test {

/// Uploads, launches (a kernel with a console, too), copies, graphs, downloads.
static std::vector<float> useEverything() {
  const std::shared_ptr<Device> device = Device::open("cuda:0");
  Tensor x(device, f32, {16}), y(device, f32, {16});
  x.uploadFloats(std::vector<float>(16, 1.0f));
  launch(*device, scaleKernel, 1, {x, 2.0f});
  launch(*device, checkKernel, 4, {x});
  device->synchronize();
  device->copy(y.data(), x.data(), y.bytes());
  Plan plan;
  plan.launches.push_back({&addKernel, "", {1, 1, 1}, {x.ref(), y.ref()}});
  const PreparedPlan prepared = prepare(*device, plan);
  for (int i = 0; i < 2; ++i)
    prepared.run();
  device->synchronize();
  return x.downloadFloats();
}

namespace {
/// The outcome of a run.
struct Outcome {
  std::string text; // of the error and of standard error
  bool failed = false;
};
} // namespace

static Outcome tryEverything() {
  Outcome outcome;
  testing::internal::CaptureStderr();
  try {
    EXPECT_EQ(useEverything(), std::vector<float>(16, 6.0f));
  } catch (const Error &error) {
    outcome = {error.what(), true};
  }
  forgetCompiled();
  outcome.text += testing::internal::GetCapturedStderr();
  return outcome;
}

TEST(CudaFailures, AreToldWithTheirCallAndLeaveNothing) {
  const StubControls &stub = useStub();
  EXPECT_EQ(tryEverything().text, "");
  EXPECT_STREQ(stub.left(), "");
  std::map<std::string, int64_t> calls;
  std::istringstream record(stub.record());
  for (std::string call; std::getline(record, call);)
    ++calls[call];
  EXPECT_GE(calls.size(), 30u);
  for (const auto &[call, count] : calls)
    for (int64_t number = 1; number <= count; ++number) {
      if (call == "cuCtxGetCurrent" || call == "cuCtxSetCurrent")
        continue; // asked before every other call: what follows fails as well
      stub.reset();
      stub.fail(call.c_str(), number, 999);
      const Outcome outcome = tryEverything();
      const std::string place = fmt::format("{} number {}: {}", call, number, outcome.text);
      EXPECT_NE(outcome.text.find("device 'cuda:0': "), std::string::npos) << place;
      EXPECT_NE(outcome.text.find(call + " returned CUDA_ERROR_UNKNOWN: unknown error"), std::string::npos) << place;
      // Only the objects that could not be released are left.
      const bool gaveBack = call.find("Destroy") != std::string::npos || call.find("Free") != std::string::npos ||
                            call.find("Unload") != std::string::npos || call.find("Release") != std::string::npos;
      if (!gaveBack) {
        EXPECT_STREQ(stub.left(), "") << place;
      }
    }
  stub.reset();
  EXPECT_EQ(tryEverything().text, "");
}

} // namespace kiln::test
