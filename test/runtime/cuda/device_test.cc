// The CUDA device on a stub driver: its promises of order and lifetimes, its calls, and its errors when the driver
// refuses.

#include "lowering/Backend.h"
#include "runtime/Compile.h"
#include "runtime/Meters.h"
#include "runtime/SideStream.h"
#include "runtime/Tensor.h"
#include "runtime/cuda/Driver.h"
#include "runtime/cuda/PtxText.h"
#include "test/expect_error.h"
#include "test/runtime/cuda/stub_driver.h"
#include "test/runtime/kernels.h"
#include "test/temporary_folder.h"

#include <fmt/format.h>
#include <malloc.h>

#include <filesystem>
#include <functional>
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
  expectError([] { Device::open("cuda:x"); }, {"unknown device 'cuda:x'", " (known: ", "cuda:0)"});
}

TEST_F(CudaDevice, RefusesAGpuWithoutMemoryPools) {
  stub.setAttribute(115, 0);
  expectError([&] { open(); }, {"device 'cuda:0': expected a GPU with memory pools, but 'Stub GPU' has none"});
}

// A plan with the device's target gets the driver's values: the smaller one of a CTA's shared memory there and in code.
TEST_F(CudaDevice, HasTheFactsOfItsGpu) {
  stub.setAttribute(16, 132);
  stub.setAttribute(38, 60 << 20);
  stub.setAttribute(81, 101 << 10);
  stub.setAttribute(82, 32768);
  stub.setAttribute(97, 99 << 10);
  std::shared_ptr<Device> device = open();
  const GpuFacts facts = std::get<GpuFacts>(device->target().facts);
  EXPECT_EQ(device->target().name, "Stub GPU");
  EXPECT_EQ(facts.architecture, 90);
  EXPECT_EQ(facts.sms, 132);
  EXPECT_EQ(facts.ctaSharedBytes, 99 << 10);
  EXPECT_EQ(facts.smSharedBytes, 101 << 10);
  EXPECT_EQ(facts.registers, 32768);
  EXPECT_EQ(facts.l2Bytes, 60 << 20);
  stub.setAttribute(97, 300 << 10);
  device.reset(); // devices of one name share their facts
  EXPECT_EQ(std::get<GpuFacts>(open()->target().facts).ctaSharedBytes, 227 << 10);
}

// A cubin runs on GPUs of one compute capability, PTX on newer ones.
TEST_F(CudaDevice, AsksForACubinOnlyForItsOwnCapability) {
  GTEST_FLAG_SET(death_test_style, "threadsafe"); // the linker is sought once in a process
  const auto names = [&] {
    const TemporaryFolder toolkit;
    std::filesystem::create_directory(toolkit / "lib64");
    std::filesystem::create_symlink(stubDriver(), toolkit / "lib64/libnvJitLink.so.13");
    ::setenv("CUDA_PATH", toolkit.path.c_str(), 1);
    const std::string exact = openCapability(9, 0)->backend().name(), other = openCapability(8, 7)->backend().name();
    std::fprintf(stderr, "%s and %s\n", exact.c_str(), other.c_str());
  };
  EXPECT_EXIT((names(), std::_Exit(0)), testing::ExitedWithCode(0), "sm_90a:cubin and sm_86\n");
}

// The numbers that the driver's interface defines: streams do not wait for the default stream (1); only clocks need
// events with times (0 instead of 2); released memory stays in the pool; other threads may call the driver during a
// capture (1); code has line information (13).
TEST_F(CudaDevice, PassesTheDriversOptions) {
  const std::shared_ptr<Device> device = open();
  EXPECT_STREQ(stub.options(), "cuStreamCreate 1\n"
                               "cuEventCreate 2\n"
                               "cuMemPoolCreate 1 1\n"
                               "cuMemPoolSetAttribute 4 18446744073709551615\n");
  const std::string opened = stub.options();
  Tensor x(device, f32, {16});
  const PreparedPlan prepared = prepare(*device, {.launches = {{&scaleKernel, "", {1, 1, 1}, {x.ref(), 2.0f}}}});
  x.uploadFloats(std::vector<float>(16, 1.0f));
  for (int i = 0; i < 2; ++i)
    prepared.run();
  clockOf(*device)->mark();
  EXPECT_EQ(std::string(stub.options()).substr(opened.size()), "cuModuleLoadDataEx 5\n"
                                                               "cuModuleLoadDataEx 6\n"
                                                               "cuModuleLoadDataEx 13\n"
                                                               "cuMemHostAlloc 0\n"
                                                               "cuEventCreate 2\n"
                                                               "cuStreamBeginCapture_v2 1\n"
                                                               "cuGraphInstantiateWithFlags 0\n"
                                                               "cuEventCreate 0\n"
                                                               "cuEventCreate 0\n");
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

// The stub refuses a stream or a pool of another GPU than the current one.
TEST_F(CudaDevice, TakesItsTurnWithAnotherGpu) {
  ::setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
  const std::shared_ptr<Device> devices[] = {open(), Device::open("cuda:1")};
  for (int i = 0; i < 4; ++i) {
    Tensor x(devices[i % 2], f32, {16});
    x.uploadFloats(std::vector<float>(16, 2.0f));
    launch(*devices[i % 2], scaleKernel, 1, {x, 3.0f});
    EXPECT_EQ(x.downloadFloats(), std::vector<float>(16, 6.0f));
  }
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

// Objects go with their context, whichever thread releases them and whatever is pending; the stub refuses to release
// memory that a pending copy reads.
TEST_F(CudaDevice, MayBeReleasedByAnotherThread) {
  std::shared_ptr<Device> device = open();
  std::optional<Tensor> x;
  x.emplace(device, f32, Shape{16});
  PreparedPlan plan = prepare(*device, {.launches = {{&scaleKernel, "", {1, 1, 1}, {x->ref(), 2.0f}}}});
  std::unique_ptr<DeviceClock> clock = clockOf(*device);
  std::unique_ptr<SideStream> side = sideStreamOf(*device);
  plan.run();
  plan.run();
  clock->mark();
  x->uploadFloats(std::vector<float>(16, 1.0f));
  testing::internal::CaptureStderr();
  const std::function<void()> releases[] = {[&] { plan = {}; },        [&] { clock.reset(); }, [&] { side.reset(); },
                                            [&] { forgetCompiled(); }, [&] { x.reset(); },     [&] { device.reset(); }};
  for (const std::function<void()> &release : releases)
    std::jthread(release).join();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_STREQ(stub.left(), "");
}

// While the process ends, the driver may have ended before.
TEST_F(CudaDevice, SaysNothingOfReleasesAfterTheDriversEnd) {
  const std::shared_ptr<Device> device = open();
  void *const memory = device->allocate(4);
  stub.fail("cuMemFreeAsync", 1, 4);
  testing::internal::CaptureStderr();
  device->release(memory);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// The driver allocates no 0 bytes.
TEST_F(CudaDevice, AllocatesNothingAsSomething) {
  const std::shared_ptr<Device> device = open();
  void *const memory = device->allocate(0);
  EXPECT_NE(memory, nullptr);
  device->release(memory);
}

// A forgotten kernel has run before it is unloaded; a new device of that name works.
TEST_F(CudaDevice, RunsWhatWasAskedOfAForgottenKernel) {
  const std::shared_ptr<Device> device = open();
  Tensor x(device, f32, {16});
  x.uploadFloats(std::vector<float>(16, 2.0f));
  launch(*device, scaleKernel, 1, {x, 3.0f});
  testing::internal::CaptureStderr();
  forgetCompiled();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), ""); // the stub refuses to unload a kernel with a pending launch
  EXPECT_EQ(x.downloadFloats(), std::vector<float>(16, 6.0f));
}

// Nothing is pending after a wait, so a kernel is unloaded without another one. A run of a graph is a launch of its
// kernels.
TEST_F(CudaDevice, WaitsForAForgottenKernelsLaunchesAlone) {
  const std::shared_ptr<Device> device = open();
  Tensor x(device, f32, {16});
  std::optional<PreparedPlan> prepared;
  const auto forget = [&] {
    prepared.reset();
    const int64_t before = stub.count("cuStreamSynchronize");
    forgetCompiled();
    return stub.count("cuStreamSynchronize") - before;
  };
  for (const bool isPending : {false, true}) {
    prepared = prepare(*device, {.launches = {{&scaleKernel, "", {1, 1, 1}, {x.ref(), 2.0f}}}});
    for (int i = 0; i < 3; ++i)
      prepared->run();
    device->synchronize();
    if (isPending)
      prepared->run();
    EXPECT_EQ(forget(), isPending ? 1 : 0);
  }
}

// Failed checks of a forgotten kernel are reported at the next synchronize().
TEST_F(CudaDevice, TellsOfFailedChecksOfAForgottenKernel) {
  const std::shared_ptr<Device> device = open();
  Tensor x(device, f32, {4});
  x.uploadFloats({1, -1, 1, 1});
  launch(*device, checkKernel, 1, {x});
  forgetCompiled();
  expectError([&] { device->synchronize(); }, {"check failed: x is negative", "element 1"});
}

/// Fails where an element of x is above 1.
static void checkSmall(View x) { device_assert(load(x, {0}, {4}) <= 1.0, "x is large"); }
static const Kernel smallKernel = kernel("check_small", checkSmall, {"x"});

// Of several kernels, the failed check of the earliest launch is reported, not that of the first kernel.
TEST_F(CudaDevice, TellsOfTheEarliestFailedCheck) {
  const std::shared_ptr<Device> device = open();
  Tensor good(device, f32, {4}), negative(device, f32, {4}), large(device, f32, {4});
  negative.uploadFloats({-1, 0, 0, 0});
  large.uploadFloats({2, 0, 0, 0});
  launch(*device, checkKernel, 1, {negative});
  launch(*device, smallKernel, 1, {large});
  expectError([&] { device->synchronize(); }, {"x is negative"});
  launch(*device, checkKernel, 1, {good});
  launch(*device, smallKernel, 1, {large});
  launch(*device, checkKernel, 1, {negative});
  expectError([&] { device->synchronize(); }, {"x is large"});
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
  expectError([&] { prepare(*device, {.launches = {{&scaleKernel, "", {1, 1, 65536}, {x.ref(), 0.5f}}}}); },
              {"kernel 'scale': expected a grid of at most 2147483647x65535x65535 programs on device 'cuda:0'"});
}

TEST_F(CudaDevice, TellsTheArgumentsOfEachProblem) {
  const std::shared_ptr<Device> device = open();
  Tensor x(device, f32, {16}), y(device, f32, {16});
  stub.fail("cuLaunchKernel", 1, 999);
  expectError(
      [&] {
        run(*device, {.launches = grouped({{&scaleKernel, "", {1, 1, 1}, {x.ref(), 0.5f}},
                                           {&scaleKernel, "", {1, 1, 1}, {y.ref(), 2.0f}}})});
      },
      {fmt::format("arguments 'x' {}, ", fmt::ptr(x.data())), "'s' 0x3f000000; ",
       fmt::format("; 'x' {}, ", fmt::ptr(y.data())), "'s' 0x40000000, but cuLaunchKernel"});
}

// An illegal address is reported at the next wait, and could be of any launch since the last one. The simulator prints
// details on standard error, which a GPU would not.
TEST_F(CudaDevice, NamesTheLaunchesThatAFaultMayBeOf) {
  const std::shared_ptr<Device> device = open();
  Tensor x(device, f32, {16}), y(device, f32, {16});
  void *const memory = device->allocate(4);
  launch(*device, addKernel, 2, {x, x});
  device->synchronize();
  launch(*device, scaleKernel, 1, {x, 2.0f});
  TensorRef beyond = y.ref();
  beyond.extents = {64};
  launch(*device, addKernel, 4, {beyond, beyond});
  testing::internal::CaptureStderr();
  const std::string text = errorOf([&] { device->synchronize(); });
  for (const char *const part :
       {"device 'cuda:0': expected all launches to end well, but cuStreamSynchronize returned "
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        "launched since the last wait:\n  kernel 'add' at ", ", 4x1x1 programs\n  kernel 'scale' at "})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_EQ(text.find("2x1x1 programs"), std::string::npos) << text; // launched before that wait
  EXPECT_THROW(launch(*device, scaleKernel, 1, {x, 2.0f}), Error);
  device->release(memory); // fails, as every call does now
  forgetCompiled();
  EXPECT_EQ(testing::internal::GetCapturedStderr().find("cuMemFreeAsync"), std::string::npos);
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
  const size_t before = std::string(stub.order()).size();
  other->ask([&](void *) { driver.fillBytes(cuda::Address(x.data()), 7, 64, theirs); });
  EXPECT_EQ(std::string(stub.order()).substr(before), "stream 1 cuMemsetD8Async\n");
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

// A second stream has ended its work when the last operation has, which may take any time.
TEST_F(CudaDevice, TellsWhetherAnothersStreamHasEnded) {
  const std::shared_ptr<Device> device = open();
  const std::unique_ptr<SideStream> other = sideStreamOf(*device);
  void *const library = ::dlopen(stubDriver().c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto ask = reinterpret_cast<decltype(&kiln_stub_ask)>(::dlsym(library, "kiln_stub_ask"));
  static int result;
  result = 600; // CUDA_ERROR_NOT_READY
  other->ask([&](void *stream) { ask(stream, "work", [](void *) { return result; }, nullptr); });
  EXPECT_NO_THROW(EXPECT_FALSE(other->isDone()));
  result = 0; // else the stub waits for it at the end
  EXPECT_TRUE(other->isDone());
}

// The first time of a clock is that of an event which has been reached: earlier work is no part of it.
TEST_F(CudaDevice, BeginsAClockAfterEarlierWork) {
  const std::shared_ptr<Device> device = open();
  Tensor x(device, f32, {16});
  device->synchronize();
  const std::unique_ptr<DeviceClock> clock = clockOf(*device);
  device->fillZero(x.data(), x.bytes());
  static_cast<float *>(x.data())[0] = 1; // the stub's memory; the pending zeros overwrite it
  clock->mark();
  EXPECT_EQ(static_cast<float *>(x.data())[0], 0);
}

// A cubin for another GPU is replaced by the PTX; a lack of memory is not.
TEST_F(CudaDevice, LoadsThePtxInPlaceOfAnUnsuitableCubinAlone) {
  std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n.reqntid 32\n{\n  ret;\n}\n";
  text += std::string("\0\177ELF", 5);
  const auto load = [&] { return open()->load("k", {.where = "k.cc:7"}, {text.begin(), text.end()}); };
  EXPECT_NO_THROW(load());
  for (const int unsuitable : {200, 209, 218, 222}) {
    stub.reset();
    stub.fail("cuModuleLoadDataEx", 1, unsuitable);
    EXPECT_NO_THROW(load()) << unsuitable;
  }
  stub.reset();
  stub.fail("cuModuleLoadDataEx", 1, 2);
  expectError(load, {"expected the driver to take the cubin of kernel 'k' at k.cc:7, but cuModuleLoadDataEx returned "
                     "CUDA_ERROR_OUT_OF_MEMORY"});
}

// Declarations of names that contain the name, and uses of it, are other text; bytes have all values but 0.
TEST(CudaPtxText, ReadsTheDeclarationOfAName) {
  const cuda::PtxText text(".global .b64 a_k_bytes = 1;\n.global .b64 k_bytes_2 = 2;\n.global .b64 k_bytes = 66560;\n"
                           ".global .b8 a_text_1[2] = {64};\n.global .b8 text_10[2] = {65};\n"
                           ".global .b8 text_1[5] = {102, 195, 188, 114};\n.global .b8 text_2[4] = {66, 67, 0, 68};\n"
                           ".entry k()\n.reqntid 128, 1, 1\n{ ld.global.b64 %rd1, [k_bytes]; }\n");
  EXPECT_EQ(text.constant("k_bytes"), 66560);
  EXPECT_EQ(text.constant("bytes"), 0);
  EXPECT_EQ(text.bytes("text_1"), "für");
  EXPECT_EQ(text.bytes("text_2"), "BC");
  EXPECT_EQ(text.bytes("text_3"), "");
  EXPECT_EQ(text.threads(), 128);
  EXPECT_EQ(cuda::PtxText(".entry k() { ret; }").threads(), 0);
}

TEST_F(CudaDevice, ShowsTheDriversLogForPtxThatItRefuses) {
  const std::string text = ".version 8.0\n.target sm_80\n.visible .entry k()\n.reqntid 32\n{ nonsense; }\n";
  expectError([&] { open()->load("k", {.where = "k.cc:7"}, {text.begin(), text.end()}); },
              {"expected the driver to take the PTX of kernel 'k' at k.cc:7, but cuModuleLoadDataEx returned "
               "CUDA_ERROR_INVALID_PTX",
               "\n", "nonsense"});
}

} // namespace kiln::test
