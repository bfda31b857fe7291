// Marks between launches, on each device, and memory that is free.

#include "runtime/Compile.h"
#include "runtime/Meters.h"
#include "runtime/Tensor.h"
#include "test/devices.h"
#include "test/runtime/kernels.h"

namespace kiln::test {

namespace {

class MetersTest : public DeviceTest {};

void touch(View x) { store(x, {program_id() * 64}, load(x, {program_id() * 64}, {64}) + 1.0); }
const Kernel touchKernel = kernel("touch", touch, {"x (N)"});

// Marks are returned in order. Their times are after earlier operations and before now, and a launch takes the time
// between two of them. Read marks are removed, and the clock continues.
TEST_P(MetersTest, MarksAreInOrder) {
  const std::shared_ptr<Device> device = Device::open(GetParam());
  Tensor x(device, f32, {int64_t{64} * 64});
  x.fillZero();
  const std::unique_ptr<DeviceClock> clock = clockOf(*device);
  for (int round = 0; round < 2; ++round) {
    const double before = secondsNow();
    clock->mark();
    for (int i = 0; i < 3; ++i) {
      launch(*device, touchKernel, 64, {x});
      clock->mark();
    }
    const std::vector<double> times = clock->take();
    ASSERT_EQ(times.size(), 4u);
    EXPECT_GE(times[0], before - 1e-6);
    for (int i = 0; i < 3; ++i)
      EXPECT_GT(times[i + 1], times[i]) << i;
    if (clock->isTime()) {
      EXPECT_LE(times[3], secondsNow() + 1e-6);
    }
  }
  EXPECT_TRUE(clock->take().empty());
  device->synchronize();
}

KILN_ON_DEVICES_AND_DRIVER(MetersTest);

// In the simulator, time measures work: launches of equal work take equal time, and twice as many programs take twice
// that.
TEST(Meters, SimulatorsCountInstructions) {
  const std::shared_ptr<Device> device = Device::open("simulator:sm_80");
  Tensor x(device, f32, {int64_t{64} * 64});
  x.fillZero();
  const std::unique_ptr<DeviceClock> clock = clockOf(*device);
  clock->mark();
  for (const int64_t programs : {16, 16, 32}) {
    launch(*device, touchKernel, programs, {x});
    clock->mark();
  }
  const std::vector<double> times = clock->take();
  const double one = times[1] - times[0];
  EXPECT_FALSE(clock->isTime());
  EXPECT_NEAR((times[2] - times[1]) / one, 1, 0.05);
  EXPECT_NEAR((times[3] - times[2]) / one, 2, 0.05);
}

// The free memory that a driver reports; a device that uses host memory reports none.
TEST(Meters, TellFreeMemory) {
  ::setenv("KILN_CUDA_DRIVER", stubDriver().c_str(), 1);
  EXPECT_EQ(freeBytesOf(*Device::open("cuda:0")), int64_t{8} << 30);
  EXPECT_FALSE(freeBytesOf(*Device::open("cpu")));
  EXPECT_FALSE(freeBytesOf(*Device::open("simulator:sm_80")));
}

} // namespace

} // namespace kiln::test
