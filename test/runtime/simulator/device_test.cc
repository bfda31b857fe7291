// The simulator as a device: PTX as an executable, memory with checked bounds, and a launch's errors at the next
// synchronize(). The PTX is written by hand: .loc has the line of kernels.cc of each instruction.

#include "runtime/Compile.h"
#include "runtime/Tensor.h"
#include "runtime/simulator/SimulatorDevice.h"
#include "test/expect_error.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

namespace kiln::test {

static const std::string deviceName = "simulator:sm_80";

/// A module of one kernel `k` with so many threads a program and 8-byte parameters p0, p1, …, the grid first.
static std::string ptx(int parameters, const std::string &body, const std::string &threads = ".reqntid 32",
                       const std::string &target = "sm_80", const std::string &variables = "") {
  std::string list;
  for (int i = 0; i < parameters; ++i)
    list += fmt::format("{}.param .b64 p{}", i ? ", " : "", i);
  return fmt::format(".version 8.0\n.target {}\n.address_size 64\n{}\n.visible .entry k({}) {} {{\n.reg .b64 %d<8>;\n"
                     ".reg .b32 %r<8>;\n.reg .f32 %f<4>;\n.reg .pred %p;\n.loc 1 7 0\n{}\nret;\n}}\n"
                     ".file 1 \"kernels.cc\"\n",
                     target, variables, list, threads, body);
}

/// A signature of so many f32 vectors of 64 elements, followed by scalars.
static Signature signatureOf(int vectors, std::vector<Type> scalars = {}) {
  Signature signature;
  for (int i = 0; i < vectors; ++i) {
    signature.parameters.push_back({.extents = {64}, .strides = {1}});
    signature.slots.push_back({abi::Slot::pointer, i});
  }
  for (const Type type : scalars) {
    signature.slots.push_back({abi::Slot::scalar, static_cast<int>(signature.parameters.size())});
    signature.parameters.push_back({.isView = false, .type = type});
  }
  return signature;
}

static std::shared_ptr<const Executable> load(Device &device, const std::string &text, Signature signature) {
  return device.load("k", std::move(signature), {text.begin(), text.end()});
}

/// The address of element 32·program + thread of the vector in parameter `p3`, in %d1.
static const std::string elementAddress = "ld.param.b64 %d0, [p3];\nmov.u32 %r0, %ctaid.x;\nmov.u32 %r1, %tid.x;\n"
                                          "mad.lo.u32 %r2, %r0, 32, %r1;\nmad.wide.u32 %d1, %r2, 4, %d0;\n";
static const std::string scaleText = ptx(5, elementAddress + "ld.param.f32 %f0, [p4];\nld.global.f32 %f1, [%d1];\n"
                                                             "mul.f32 %f1, %f1, %f0;\nst.global.f32 [%d1], %f1;");
/// Every thread of program 1 stores 1 from 128 bytes after the vector's end on; line 7 of kernels.cc.
static const std::string carelessText = ptx(4, elementAddress + "setp.eq.u32 %p, %r0, 1;\n"
                                                                "@%p st.global.f32 [%d1+256], 0f3F800000;");

namespace {
class SimulatorDeviceTest : public testing::Test {
protected:
  std::shared_ptr<SimulatorDevice> device = SimulatorDevice::open(deviceName);
  Tensor vector{device, f32, {64}};
};

/// Sets KILN_SIM for a scope.
struct Environment {
  explicit Environment(const char *text) { setenv("KILN_SIM", text, 1); }
  ~Environment() { unsetenv("KILN_SIM"); }
};
} // namespace

// --- Running -------------------------------------------------------------------------------------------------------

// A plan with the device's target gets the known values of such a GPU.
TEST_F(SimulatorDeviceTest, HasTheFactsOfItsArchitecture) {
  for (const std::string name : {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120"}) {
    const std::shared_ptr<Device> each = Device::open("simulator:" + name);
    EXPECT_EQ(each->target().name, name);
    EXPECT_EQ(std::get<GpuFacts>(each->target().facts).architecture, std::atoi(name.c_str() + 3));
  }
}

TEST_F(SimulatorDeviceTest, NamesWhatThereIsToOpen) {
  expectError([] { Device::open("simulator:sm_81"); },
              {"unknown device 'simulator:sm_81'", " (known: cpu, ", "simulator:sm_80, simulator:sm_86"});
  expectError([] { SimulatorDevice::open("cpu"); },
              {"unknown simulator 'cpu' (known: simulator:sm_80, ", "simulator:sm_120)"});
}

// Slots become parameters in their order: the grid, the vector, the scalar.
TEST_F(SimulatorDeviceTest, RunsPtxWithTheSlotsOfItsArguments) {
  std::vector<float> values(64), want(64);
  for (int i = 0; i < 64; ++i) {
    values[i] = static_cast<float>(i);
    want[i] = static_cast<float>(3 * i);
  }
  vector.uploadFloats(values);
  device->launch(*load(*device, scaleText, signatureOf(1, {f32})), 2, {vector, 3.0f});
  device->synchronize();
  EXPECT_EQ(vector.downloadFloats(), want);
}

// Program (x, y, z) is block (x, y, z), and a program has the threads of .reqntid.
TEST_F(SimulatorDeviceTest, GivesProgramsTheirCoordinates) {
  const std::string text = ptx(4,
                               "ld.param.b64 %d0, [p3];\nmov.u32 %r0, %ctaid.x;\nmov.u32 %r1, %ctaid.y;\n"
                               "mov.u32 %r2, %ctaid.z;\nmov.u32 %r3, %tid.y;\nld.param.b32 %r4, [p0];\n"
                               "ld.param.b32 %r5, [p1];\nmad.lo.u32 %r6, %r2, %r5, %r1;\n"
                               "mad.lo.u32 %r6, %r6, %r4, %r0;\nmad.lo.u32 %r6, %r6, 2, %r3;\n"
                               "mad.wide.u32 %d1, %r6, 4, %d0;\ncvt.rn.f32.u32 %f0, %r6;\nst.global.f32 [%d1], %f0;",
                               ".reqntid 1, 2");
  device->launch(*load(*device, text, signatureOf(1)), {2, 4, 4}, {vector});
  device->synchronize();
  const std::vector<float> got = vector.downloadFloats();
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(got[i], static_cast<float>(i));
}

// The constant `k_shared_bytes` is the number of bytes of dynamic shared memory: an access beyond it is an error.
TEST_F(SimulatorDeviceTest, GivesDynamicSharedMemory) {
  const std::string variables =
      ".extern .shared .align 16 .b8 pool[];\n.visible .const .align 8 .b64 k_shared_bytes = 4096;\n";
  for (const int place : {4092, 4096}) {
    const std::string text = ptx(4, fmt::format("mov.b32 %r0, pool;\nst.shared.b32 [%r0+{}], %r0;", place),
                                 ".reqntid 1", "sm_80", variables);
    device->launch(*load(*device, text, signatureOf(1)), 1, {vector});
    if (place < 4096)
      device->synchronize();
    else
      expectError([&] { device->synchronize(); }, {"bounds: writes 4 bytes at 4096 in .shared, which has 4096 bytes"});
  }
}

// An executable is shared by devices of one name, and outlives the device that loaded it; so do its variables.
TEST_F(SimulatorDeviceTest, SharesExecutablesWithDevicesOfItsName) {
  const std::string text = ptx(4,
                               "ld.param.b64 %d0, [p3];\nmov.b64 %d1, table;\nld.global.f32 %f0, [%d1];\n"
                               "st.global.f32 [%d0], %f0;",
                               ".reqntid 1", "sm_80", ".global .f32 table = 0f40E00000;");
  const std::shared_ptr<const Executable> executable = load(*Device::open(deviceName), text, signatureOf(1));
  device->launch(*executable, 1, {vector});
  device->synchronize();
  EXPECT_EQ(vector.downloadFloats()[0], 7.0f);
}

// --- What is refused -----------------------------------------------------------------------------------------------

TEST_F(SimulatorDeviceTest, RefusesWhatItsGpuWouldNotRun) {
  const auto refuses = [&](const std::string &text, std::initializer_list<std::string> parts) {
    expectError([&] { load(*device, text, signatureOf(1)); }, parts);
  };
  refuses(ptx(4, "", ".reqntid 32", "sm_86"),
          {"expected PTX that device 'simulator:sm_80' takes, but got some for sm_86"});
  refuses(ptx(4, "", ".reqntid 32", "sm_80a"), {"but got some for sm_80a"});
  refuses(ptx(5, ""), {"expected 4 parameters of 8 bytes", "but got 5 of 40 bytes together"});
  refuses(ptx(4, "", ""), {"kernel 'k': expected .reqntid or .maxntid"});
  refuses(ptx(4, "mov.b32 %r0, big;", ".reqntid 32", "sm_80", ".shared .b8 big[49153];"),
          {"expected at most 49152 bytes of static shared memory, but got 49153"});
  refuses(ptx(4, "", ".reqntid 32", "sm_80", ".global .b64 k_shared_bytes = 166913;"),
          {"expected at most 166912 bytes of shared memory", "but got 166913"});
  refuses("nonsense", {"PTX line 1: "});
  load(*device, ptx(4, "", ".reqntid 32", "sm_75"), signatureOf(1));
  load(*Device::open("simulator:sm_90a"), ptx(4, "", ".reqntid 32", "sm_90a"), signatureOf(1));
}

TEST_F(SimulatorDeviceTest, RefusesGridsThatNoGpuHas) {
  const std::shared_ptr<const Executable> executable = load(*device, ptx(4, ""), signatureOf(1));
  expectError([&] { device->launch(*executable, {1, 65536}, {vector}); },
              {"expected a grid of at most 2147483647x65535x65535 programs", "but got 1x65536x1"});
  device->launch(*executable, {1, 0}, {vector}); // nothing to run
}

// --- What a launch did wrong -----------------------------------------------------------------------------------------

// The error has the kernel, the launch, the program, the thread and the C++ line; it is reported once.
TEST_F(SimulatorDeviceTest, TellsFaultsAtTheNextSynchronize) {
  const std::shared_ptr<const Executable> right = load(*device, scaleText, signatureOf(1, {f32})),
                                          wrong = load(*device, carelessText, signatureOf(1));
  device->launch(*right, 2, {vector, 1.0f});
  device->launch(*wrong, 2, {vector});
  device->launch(*wrong, 2, {vector});
  expectError(
      [&] { device->synchronize(); },
      {"kernel 'k', launch 2 on device 'simulator:sm_80', whose blocks are programs:\nkernels.cc:7: bounds: writes "
       "4 bytes at 0x",
       ", 132 bytes beyond an allocation of 256 bytes (block 1,0,0, thread 0,0,0), 32 times in all",
       "and faults in 1 later launch"});
  device->synchronize();
  device->launch(*right, 2, {vector, 1.0f});
  device->synchronize();
}

// Programs of a launch are unordered, so two that store different values to one address race.
TEST_F(SimulatorDeviceTest, FindsRacesBetweenPrograms) {
  const std::string text =
      ptx(4, "ld.param.b64 %d0, [p3];\nmov.u32 %r0, %ctaid.x;\nst.global.b32 [%d0], %r0;", ".reqntid 1");
  device->launch(*load(*device, text, signatureOf(1)), 2, {vector});
  expectError([&] { device->synchronize(); },
              {"kernels.cc:7: race-programs: ", "\nonly atomics order programs: a release or acq_rel after the write"});
}

// An access of the source that is several instructions, such as the store of a tile, has one finding with their sum.
TEST_F(SimulatorDeviceTest, CountsTheInstructionsOfALineTogether) {
  const std::string text = ptx(4,
                               "ld.param.b64 %d0, [p3];\nmov.u32 %r0, %ctaid.x;\nst.global.b32 [%d0], %r0;\n"
                               "st.global.b32 [%d0+12], %r0;",
                               ".reqntid 1");
  device->launch(*load(*device, text, signatureOf(1)), 2, {vector});
  expectError([&] { device->synchronize(); }, {"kernels.cc:7: race-programs: ", ", 2 times in all"});
}

// A finding names the element of the argument: the one for which programs race, or the one at the address of an access
// out of bounds.
TEST_F(SimulatorDeviceTest, NamesTheElementOfAnArgument) {
  Signature signature = signatureOf(1);
  signature.parameters[0] = {.name = "out", .extents = {4, Signature::dynamic}, .strides = {Signature::dynamic, 1}};
  signature.slots = {{abi::Slot::pointer, 0}, {abi::Slot::extent, 0, 1}, {abi::Slot::stride, 0, 0}};
  const auto stores = [&](int64_t byte) {
    const std::string text = ptx(
        6, "ld.param.b64 %d0, [p3];\nmov.u32 %r0, %ctaid.x;\nst.global.b32 [%d0+" + std::to_string(byte) + "], %r0;",
        ".reqntid 1");
    device->launch(*load(*device, text, signature), 2, {TensorRef(vector).reshape({4, 16})});
  };
  stores(4 * (3 * 16 + 9));
  expectError([&] { device->synchronize(); }, {"writes the byte at 0x", " (out[3, 9] of f32[4x16]), which thread 0"});
  stores(4 * (5 * 16 + 2));
  expectError([&] { device->synchronize(); },
              {"writes 4 bytes at 0x", " (out[5, 2] of f32[4x16]), 76 bytes beyond an allocation of 256 bytes"});
}

// --- Memory --------------------------------------------------------------------------------------------------------

TEST_F(SimulatorDeviceTest, AlignsMemoryTo256Bytes) {
  std::vector<void *> places;
  for (const int64_t bytes : {1, 0, 300, 7}) {
    places.push_back(device->allocate(bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(places.back()) % 256, 0u) << bytes;
  }
  for (void *const place : places)
    device->release(place);
}

TEST_F(SimulatorDeviceTest, HoldsNaNsUntilSomethingIsWritten) {
  auto *const memory = static_cast<float *>(device->allocate(8));
  float values[2] = {};
  device->download(values, memory, 8);
  EXPECT_TRUE(std::isnan(values[0]) && std::isnan(values[1]));
  device->fillZero(memory, 8);
  device->download(values, memory, 8);
  EXPECT_EQ(values[1], 0.0f);
  device->release(memory);
}

// Bytes that begin within an allocation and end behind it are described by that one, although others lie behind it.
TEST_F(SimulatorDeviceTest, DescribesBytesByTheAllocationThatTheyBeginIn) {
  char host[8] = {};
  std::vector<char *> all(16);
  for (char *&each : all)
    each = static_cast<char *>(device->allocate(8));
  for (char *const each : all)
    expectError([&] { device->upload(each + 4, host, 8); }, {"but they lie 4 bytes beyond an allocation of 8 bytes"});
  for (char *const each : all)
    device->release(each);
}

// Copies check both ends, and that the memory is allocated.
TEST_F(SimulatorDeviceTest, RefusesCopiesBeyondItsMemory) {
  char host[16] = {};
  auto *const memory = static_cast<char *>(device->allocate(8));
  expectError([&] { device->upload(memory, host, 12); }, {"expected 12 bytes of device 'simulator:sm_80' at 0x",
                                                          "but they lie 4 bytes beyond an allocation of 8 bytes"});
  expectError([&] { device->download(host, memory - 4, 4); }, {"lie 4 bytes before an allocation of 8 bytes"});
  expectError([&] { device->copy(memory, host, 8); }, {"expected 8 bytes of device"});
  expectError([&] { device->fillZero(memory + 4, 5); }, {"lie 1 bytes beyond"});
  device->copy(memory + 2, memory, 6);
  device->release(memory);
  expectError([&] { device->download(host, memory + 4, 4); }, {"lie 4 bytes into 8 bytes that were released"});
  expectError([&] { device->release(memory); }, {"expected memory of device 'simulator:sm_80' to release"});
}

// A launch that uses released memory is an error, even if the memory has not been allocated again.
TEST_F(SimulatorDeviceTest, FindsUsesOfReleasedMemory) {
  const std::shared_ptr<const Executable> executable = load(*device, scaleText, signatureOf(1, {f32}));
  TensorRef gone;
  {
    const Tensor shortLived(device, f32, {64});
    gone = shortLived.ref();
  }
  device->launch(*executable, 2, {gone, 2.0f});
  expectError([&] { device->synchronize(); },
              {"bounds: reads 4 bytes at 0x", ", 0 bytes into 256 bytes that were released (block 0,0,0, thread 0,0,0)",
               "bounds: writes 4 bytes"});
}

// --- Settings ------------------------------------------------------------------------------------------------------

// KILN_SIM is read when a device is opened; setSchedule changes it later.
TEST_F(SimulatorDeviceTest, LooksForWhatItIsTold) {
  const std::shared_ptr<const Executable> wrong = load(*device, carelessText, signatureOf(1));
  {
    const Environment environment("order=reverse check=all,-bounds");
    const std::shared_ptr<SimulatorDevice> blind = SimulatorDevice::open(deviceName);
    blind->launch(*wrong, 2, {vector});
    blind->synchronize();
    blind->setSchedule("order=reverse");
    blind->launch(*wrong, 2, {vector});
    expectError([&] { blind->synchronize(); }, {"bounds: "});
  }
}

TEST_F(SimulatorDeviceTest, RefusesSettingsThatThereAreNot) {
  const auto refuses = [](const char *text, std::initializer_list<std::string> parts) {
    const Environment environment(text);
    expectError([] { Device::open(deviceName); }, parts);
  };
  refuses(
      "orders=reverse",
      {"KILN_SIM: unknown setting 'orders'; did you mean 'order'? (known: order, delivery, seed, check, ulp, steps)"});
  refuses("order", {"KILN_SIM: expected a value in setting 'order', as in order=reverse"});
  refuses("order=backward", {"KILN_SIM: expected order to be one of forward, reverse, random, but got 'backward'"});
  refuses("delivery=never", {"expected delivery to be one of late, early, random, but got 'never'"});
  refuses("seed=-1", {"expected seed to be a number from 0 to 18446744073709551615, but got '-1'"});
  refuses("ulp=1 check=races", {"unknown check 'races'; did you mean 'race'? (known: all, bounds, "});
  refuses("steps=1e6", {"expected steps to be a number", "but got '1e6'"});
  Device::open(deviceName);
}

TEST_F(SimulatorDeviceTest, GivesUpWhereItIsTold) {
  device->setSchedule("steps=100000");
  const std::shared_ptr<const Executable> endless =
      load(*device, ptx(4, "mov.b32 %r0, 0;\nLOOP:\nadd.u32 %r0, %r0, 1;\nbra LOOP;"), signatureOf(1));
  expectError([&] { device->launch(*endless, 1, {vector}); }, {"kernel 'k': warp 0 has not ended after "});
}

/// LLVM gives line 0 to instructions that it merged from several lines.
TEST_F(SimulatorDeviceTest, NamesTheLineBeforeForLineZero) {
  device->setSchedule("steps=100000");
  const std::shared_ptr<const Executable> endless =
      load(*device, ptx(4, "mov.b32 %r0, 0;\nLOOP:\n.loc 1 0 1\nadd.u32 %r0, %r0, 1;\nbra LOOP;"), signatureOf(1));
  expectError([&] { device->launch(*endless, 1, {vector}); }, {"instructions, the last one at kernels.cc:7"});
}

// --- Counts --------------------------------------------------------------------------------------------------------

// Two warps read and write a whole vector: 4 sectors each way and warp, none in vain.
TEST_F(SimulatorDeviceTest, CountsWhatALaunchDid) {
  const std::shared_ptr<const Executable> executable = load(*device, scaleText, signatureOf(1, {f32}));
  expectError([&] { device->lastLaunch(); }, {"expected a launch on device 'simulator:sm_80' since setCounting(true)"});
  device->launch(*executable, 1, {vector, 1.0f});
  device->setCounting(true);
  device->launch(*executable, 2, {vector, 1.0f});
  const LaunchCounts &counts = device->lastLaunch();
  EXPECT_EQ(counts.kernel, "k");
  EXPECT_EQ(counts.launch, 2);
  EXPECT_EQ(counts.instructions, 2 * 10);
  EXPECT_EQ(counts.globalAccesses, 4);
  EXPECT_EQ(counts.sectors, 16);
  EXPECT_EQ(counts.idealSectors, 16);
  EXPECT_EQ(counts.sharedAccesses, 0);
  EXPECT_NE(counts.table.find("kernels.cc:7"), std::string::npos) << counts.table;
}

} // namespace kiln::test
