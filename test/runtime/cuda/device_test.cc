// The CUDA device on a stub driver: its promises of order and lifetimes, its calls, and its errors when the driver
// refuses.

#include "lowering/Backend.h"
#include "runtime/Compile.h"
#include "runtime/SideStream.h"
#include "runtime/Tensor.h"
#include "runtime/cuda/Driver.h"
#include "test/expect_error.h"
#include "test/runtime/cuda/stub_driver.h"
#include "test/runtime/kernels.h"

#include <malloc.h>
#include <thread>

namespace kiln::test {

namespace {
class CudaDevice : public testing::Test {
protected:
  const StubControls &stub = useStub();

  /// Compiled kernels keep their context.
  void TearDown() override { forgetCompiled(); }

  std::shared_ptr<Device> open() const { return Device::open("cuda:0"); }
  /// Opens a GPU of this compute capability.
  std::shared_ptr<Device> openCapability(int major, int minor) const {
    forgetCompiled();
    stub.setAttribute(75, major);
    stub.setAttribute(76, minor);
    return open();
  }
};
} // namespace

// --- Opening ---------------------------------------------------------------------------------------------------------

TEST_F(CudaDevice, WithoutADriverSaysWhatItLookedFor) {
  ::setenv("KILN_CUDA_DRIVER", "libno_driver.so.1", 1);
  expectError([&] { open(); }, {"expected the CUDA driver's library 'libno_driver.so.1'", "KILN_CUDA_DRIVER",
                                "could not open it", "No such file"});
  EXPECT_EQ(Device::open("cpu")->name(), "cpu");
}

// A relative path would be another library in another folder.
TEST_F(CudaDevice, ARelativePathOfTheDriverIsRefused) {
  ::setenv("KILN_CUDA_DRIVER", "./libcuda.so.1", 1);
  expectError([&] { open(); },
              {"expected KILN_CUDA_DRIVER to be an absolute path, or a name without '/'", "but got './libcuda.so.1'"});
}

TEST_F(CudaDevice, NamesTheCallThatALibraryLacks) {
  ::setenv("KILN_CUDA_DRIVER", "libm.so.6", 1);
  expectError([&] { open(); }, {"the CUDA driver's library 'libm.so.6' lacks 'cuGetErrorName'"});
}

TEST_F(CudaDevice, WithoutAGpuSaysSo) {
  stub.fail("cuInit", 1, 100);
  expectError([&] { open(); },
              {"device 'cuda:0': expected a GPU, but cuInit returned CUDA_ERROR_NO_DEVICE: no CUDA-capable device"});
  expectError([] { Device::open("cuda:7"); }, {"device 'cuda:7': expected a GPU number below 1"});
  expectError([] { Device::open("cuda:x"); }, {"expected a device out of ", "cuda:0, but got 'cuda:x'"});
}

// A plan with the device's target gets the driver's values.
TEST_F(CudaDevice, HasTheFactsOfItsGpu) {
  stub.setAttribute(16, 132);
  stub.setAttribute(97, 99 << 10);
  const std::shared_ptr<Device> device = open();
  const GpuFacts facts = std::get<GpuFacts>(device->target().facts);
  EXPECT_EQ(device->target().name, "Stub GPU");
  EXPECT_EQ(facts.architecture, 90);
  EXPECT_EQ(facts.sms, 132);
  EXPECT_EQ(facts.ctaSharedBytes, 99 << 10);
}

// Code for one capability alone, sm_90a and sm_100a, runs on no other.
TEST_F(CudaDevice, RunsTheNewestCodeThatAGpuTakes) {
  const std::tuple<int, int, const char *> cases[] = {{8, 0, "sm_80"},  {8, 6, "sm_86"},   {8, 7, "sm_86"},
                                                      {8, 9, "sm_89"},  {9, 0, "sm_90a"},  {10, 0, "sm_100a"},
                                                      {10, 3, "sm_89"}, {12, 0, "sm_120"}, {12, 1, "sm_120"}};
  for (const auto &[major, minor, code] : cases) {
    testing::internal::CaptureStderr();
    const std::string name = openCapability(major, minor)->backend().name();
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(name, code) << major << "." << minor;
    const bool exact = std::string(code).starts_with("sm_" + std::to_string(10 * major + minor));
    EXPECT_EQ(said.empty(), exact) << said;
  }
  expectError([&] { openCapability(7, 5); },
              {"expected a GPU of compute capability 8.0 or newer, but 'Stub GPU' has 7.5"});
}

// --- Order and lifetimes ---------------------------------------------------------------------------------------------

// The driver executes operations at a wait; an upload has read its source before, for any number of pending uploads.
TEST_F(CudaDevice, HasReadTheSourceOfAnUploadWhenItReturns) {
  const std::shared_ptr<Device> device = open();
  constexpr int count = 40; // more than are under way at once, and one longer than a piece of the way
  std::vector<Tensor> tensors;
  for (int i = 0; i < count; ++i)
    tensors.emplace_back(device, i32, Shape{i == 0 ? 700000 : 3});
  std::vector<int32_t> host;
  for (int i = 0; i < count; ++i) {
    host.assign(tensors[i].count(), 100 + i);
    tensors[i].upload(host.data(), tensors[i].bytes());
  }
  for (int i = 0; i < count; ++i) {
    std::vector<int32_t> got(tensors[i].count());
    tensors[i].download(got.data(), tensors[i].bytes());
    EXPECT_EQ(got, std::vector<int32_t>(got.size(), 100 + i)) << i;
  }
}

// Launches, copies and releases are executed in the order of their calls.
TEST_F(CudaDevice, ReleasesMemoryAfterItsLastLaunch) {
  const std::shared_ptr<Device> device = open();
  Tensor sum(device, f32, {16});
  for (int i = 0; i < 3; ++i) {
    Tensor term(device, f32, {16});
    term.uploadFloats(std::vector<float>(16, static_cast<float>(i + 1)));
    launch(*device, addKernel, 1, {sum, term});
  }
  EXPECT_EQ(sum.downloadFloats(), std::vector<float>(16, 6.0f));
}

TEST_F(CudaDevice, MayBeUsedFromOneThreadAfterAnother) {
  const std::shared_ptr<Device> device = open();
  Tensor x(device, f32, {16});
  std::jthread([&] {
    x.uploadFloats(std::vector<float>(16, 2.0f));
    launch(*device, scaleKernel, 1, {x, 3.0f});
  }).join();
  EXPECT_EQ(x.downloadFloats(), std::vector<float>(16, 6.0f));
}

// A forgotten kernel has run before it is unloaded; a new device of that name works.
TEST_F(CudaDevice, RunsWhatWasAskedOfAForgottenKernel) {
  const std::shared_ptr<Device> device = open();
  Tensor x(device, f32, {16});
  x.uploadFloats(std::vector<float>(16, 2.0f));
  launch(*device, scaleKernel, 1, {x, 3.0f});
  forgetCompiled();
  EXPECT_EQ(x.downloadFloats(), std::vector<float>(16, 6.0f));
}

// --- Launches --------------------------------------------------------------------------------------------------------

struct Wide {
  int extent = 256;
};
/// A transposed matrix: it is stored through shared memory, f32 extent².
static void turn(View x, View y, Wide cfg) { store(y, {0, 0}, transpose(load(x, {0, 0}, {cfg.extent, cfg.extent}))); }
static const Kernel turnKernel = kernel("turn", turn, {"x", "y"}, {field("extent", &Wide::extent)});

// Beyond 48 KB a launch must request shared memory from the driver; 128² f32 take 64 KB.
TEST_F(CudaDevice, LaunchesWithMuchSharedMemory) {
  const std::shared_ptr<Device> device = open();
  Tensor x(device, f32, {128, 128}), y(device, f32, {128, 128});
  std::vector<float> values(128 * 128);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i);
  x.uploadFloats(values);
  launch(*device, turnKernel, 1, {x, y}, "extent=128");
  EXPECT_EQ(stub.count("cuFuncSetAttribute"), 1);
  EXPECT_EQ(y.downloadFloats()[1], 128.0f);
}

// The second run of a prepared plan records a graph; later runs are one driver call each.
TEST_F(CudaDevice, RunsAPreparedPlanAsAGraph) {
  const std::shared_ptr<Device> device = open();
  Tensor x(device, f32, {16}), y(device, f32, {16});
  y.uploadFloats(std::vector<float>(16, 1.0f));
  Plan plan;
  for (int i = 0; i < 3; ++i)
    plan.launches.push_back({&addKernel, "", {1, 1, 1}, {x.ref(), y.ref()}});
  plan.launches.push_back({&addKernel, "", {0, 1, 1}, {x.ref(), y.ref()}}); // runs nothing
  const PreparedPlan prepared = prepare(*device, plan);
  for (int i = 0; i < 4; ++i)
    prepared.run();
  EXPECT_EQ(x.downloadFloats(), std::vector<float>(16, 12.0f));
  EXPECT_EQ(stub.count("cuLaunchKernel"), 6); // of the first run, and captured
  EXPECT_EQ(stub.count("cuGraphLaunch"), 3);
}

// A check that fails in a graph is reported with its program, at every launch.
TEST_F(CudaDevice, TellsOfFailedChecksInGraphs) {
  const std::shared_ptr<Device> device = open();
  Tensor x(device, f32, {12});
  Plan plan;
  plan.launches.push_back({&checkKernel, "", {3, 1, 1}, {x.ref()}});
  const PreparedPlan prepared = prepare(*device, plan);
  for (int i = 0; i < 4; ++i) {
    std::vector<float> values(12, 0.0f);
    prepared.run();
    EXPECT_NO_THROW(device->synchronize());
    values[9] = -1;
    x.uploadFloats(values);
    prepared.run();
    expectError([&] { device->synchronize(); }, {"check failed: x is negative", "program (2, 0, 0), element 1"});
    values[9] = 0;
    x.uploadFloats(values);
  }
}

// A graph that is gone leaves nothing behind in its kernels, which keep the grids of captured launches for messages.
TEST_F(CudaDevice, GraphsThatAreGoneLeaveNoMemory) {
  const std::shared_ptr<Device> device = open();
  Tensor x(device, f32, {12});
  x.uploadFloats(std::vector<float>(12, 0.0f));
  Plan plan;
  for (int i = 0; i < 100; ++i)
    plan.launches.push_back({&checkKernel, "", {3, 1, 1}, {x.ref()}});
  const auto heldAfter = [&](int graphs) {
    for (int i = 0; i < graphs; ++i) {
      const PreparedPlan prepared = prepare(*device, plan);
      prepared.run();
      prepared.run();
      device->synchronize();
    }
    stub.forgetRecord();
    return static_cast<int64_t>(::mallinfo2().uordblks);
  };
  const int64_t few = heldAfter(3);
  EXPECT_LT(heldAfter(20) - few, 20 * 100 * 8) << "bytes for 2000 captured launches";
}

// --- Errors ----------------------------------------------------------------------------------------------------------

TEST_F(CudaDevice, SaysWhichLaunchTheDriverRefused) {
  const std::shared_ptr<Device> device = open();
  Tensor x(device, f32, {16});
  stub.fail("cuLaunchKernel", 1, 999);
  expectError([&] { launch(*device, scaleKernel, {2, 3, 1}, {x, 0.5f}); },
              {"device 'cuda:0': expected a launch of kernel 'scale' at ", "kernels.h:", "2x3x1 programs of ",
               " threads, 0 bytes of dynamic shared memory, arguments 'x' 0x", "'s' 0x3f000000",
               "but cuLaunchKernel returned CUDA_ERROR_UNKNOWN"});
}

TEST_F(CudaDevice, RefusesGridsThatNoGpuTakes) {
  const std::shared_ptr<Device> device = open();
  Tensor x(device, f32, {16});
  expectError([&] { launch(*device, scaleKernel, {1, 65536, 1}, {x, 0.5f}); },
              {"kernel 'scale': expected a grid of at most 2147483647x65535x65535 programs on device 'cuda:0'"});
}

// An illegal address is reported at the next wait, and could be of any launch since the last one. The simulator prints
// details on standard error, which a GPU would not.
TEST_F(CudaDevice, NamesTheLaunchesThatAFaultMayBeOf) {
  const std::shared_ptr<Device> device = open();
  Tensor x(device, f32, {16}), y(device, f32, {16});
  device->synchronize();
  launch(*device, scaleKernel, 1, {x, 2.0f});
  TensorRef beyond = y.ref();
  beyond.extents = {64};
  launch(*device, addKernel, 4, {beyond, beyond});
  testing::internal::CaptureStderr();
  expectError([&] { device->synchronize(); },
              {"device 'cuda:0': expected all launches to end well, but cuStreamSynchronize returned "
               "CUDA_ERROR_ILLEGAL_ADDRESS",
               "launched since the last wait:\n  kernel 'add' at ", ", 4x1x1 programs\n  kernel 'scale' at "});
  EXPECT_THROW(launch(*device, scaleKernel, 1, {x, 2.0f}), Error);
  forgetCompiled();
  testing::internal::GetCapturedStderr();
}

// Another library's stream and the device's stream wait for each other on request. On the stub, no operation runs
// before a wait.
TEST_F(CudaDevice, TakesItsTurnWithAnothersStream) {
  const std::shared_ptr<Device> device = open();
  const cuda::Driver &driver = cuda::Driver::open();
  const Tensor x(device, i8, {64}), y(device, i8, {64});
  device->synchronize();
  const std::unique_ptr<SideStream> other = sideStreamOf(*device);
  cuda::StreamHandle theirs = nullptr;
  other->ask([&](void *stream) { theirs = static_cast<cuda::StreamHandle>(stream); });
  const auto addressOf = [](const Tensor &tensor) { return reinterpret_cast<cuda::Address>(tensor.data()); };
  const auto firstOf = [&](const Tensor &tensor) {
    std::vector<int8_t> bytes(64);
    tensor.download(bytes.data(), 64);
    return static_cast<int>(bytes[0]);
  };

  other->ask([&](void *) { driver.fillBytes(addressOf(x), 7, 64, theirs); });
  device->after(theirs);
  device->copy(y.data(), x.data(), 64);
  EXPECT_EQ(firstOf(y), 7);

  device->fillZero(x.data(), 64);
  device->before(theirs);
  other->ask([&](void *) {
    driver.copyWithin(addressOf(y), addressOf(x), 64, theirs);
    driver.streamSynchronize(theirs); // which would not wait for the zeros
  });
  EXPECT_EQ(firstOf(y), 0);
}

// A cubin for another GPU is replaced by the PTX; a lack of memory is not.
TEST_F(CudaDevice, LoadsThePtxInPlaceOfAnUnsuitableCubinAlone) {
  std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n.reqntid 32\n{\n  ret;\n}\n";
  text += std::string("\0\177ELF", 5);
  const auto load = [&] { return open()->load("k", {.where = "k.cc:7"}, {text.begin(), text.end()}); };
  EXPECT_NO_THROW(load());
  stub.reset();
  stub.fail("cuModuleLoadDataEx", 1, 2);
  expectError(load, {"expected the driver to take the cubin of kernel 'k' at k.cc:7, but cuModuleLoadDataEx returned "
                     "CUDA_ERROR_OUT_OF_MEMORY"});
}

TEST_F(CudaDevice, ShowsTheDriversLogForPtxThatItRefuses) {
  const std::string text = ".version 8.0\n.target sm_80\n.visible .entry k()\n.reqntid 32\n{ nonsense; }\n";
  expectError([&] { open()->load("k", {.where = "k.cc:7"}, {text.begin(), text.end()}); },
              {"expected the driver to take the PTX of kernel 'k' at k.cc:7, but cuModuleLoadDataEx returned "
               "CUDA_ERROR_INVALID_PTX",
               "\n", "nonsense"});
}

} // namespace kiln::test
