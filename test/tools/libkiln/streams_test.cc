// The order of launches from C with another library's CUDA stream.

#include "runtime/SideStream.h"
#include "runtime/cuda/Driver.h"
#include "test/runtime/cuda/stub_driver.h"
#include "tools/libkiln/handles.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>

using namespace kiln;

namespace {

/// out = 2 x, 16 elements.
void twice(View x, View out) { store(out, {0}, load(x, {0}, {16}) * 2.0f); }
const Kernel twiceKernel = kernel("twice", twice, {"x", "out"});

// kiln_after() and kiln_before() order launches with another library's stream. On the stub driver, no operation runs
// before a wait.
TEST(Streams, TakeTheirTurn) {
  test::useStub();
  const cuda::Driver &driver = cuda::Driver::open();
  kiln_device *gpu = nullptr;
  ASSERT_EQ(kiln_device_open("cuda:0", &gpu), KILN_OK) << kiln_error();
  const std::unique_ptr<SideStream> other = sideStreamOf(*Device::open("cuda:0"));
  cuda::StreamHandle theirs = nullptr;
  other->ask([&](void *stream) { theirs = static_cast<cuda::StreamHandle>(stream); });
  std::array<float, 16> host = {};
  constexpr int64_t bytes = sizeof(host);
  std::array<int64_t, 1> shape = {16};
  std::array<kiln_tensor, 2> tensors; // x and y
  for (kiln_tensor &tensor : tensors) {
    tensor = {nullptr, 2, 0, 1, 2, 32, 1, shape.data(), nullptr, 0};
    ASSERT_EQ(kiln_allocate(gpu, bytes, &tensor.data), KILN_OK) << kiln_error();
    ASSERT_EQ(kiln_upload(gpu, tensor.data, host.data(), bytes), KILN_OK) << kiln_error();
  }
  constexpr std::array<int64_t, 3> grid = {1, 1, 1};
  const auto doubled = [&](const kiln_tensor &from, const kiln_tensor &to) {
    const kiln_kernel kernel = {&twiceKernel};
    const std::array arguments = {kiln_read(&from), kiln_write(&to)};
    EXPECT_EQ(kiln_launch(gpu, &kernel, grid.data(), arguments.data(), 2, nullptr), KILN_OK) << kiln_error();
  };
  const auto numberOf = [&](const kiln_tensor &tensor) {
    EXPECT_EQ(kiln_download(gpu, host.data(), tensor.data, bytes), KILN_OK) << kiln_error();
    return host[5];
  };
  const auto &[x, y] = tensors;
  const auto xAddress = reinterpret_cast<cuda::Address>(x.data), yAddress = reinterpret_cast<cuda::Address>(y.data);
  doubled(x, y); // compiles, which may wait
  ASSERT_EQ(kiln_synchronize(gpu), KILN_OK) << kiln_error();
  const float number = std::bit_cast<float>(0x40404040);

  other->ask([&](void *) { driver.fillBytes(xAddress, 0x40, bytes, theirs); });
  EXPECT_EQ(kiln_after(gpu, theirs), KILN_OK) << kiln_error();
  doubled(x, y);
  EXPECT_EQ(numberOf(y), 2 * number);

  doubled(y, x);
  EXPECT_EQ(kiln_before(gpu, theirs), KILN_OK) << kiln_error();
  other->ask([&](void *) {
    driver.copyWithin(yAddress, xAddress, bytes, theirs);
    driver.streamSynchronize(theirs); // which would not wait for the launch
  });
  EXPECT_EQ(numberOf(y), 4 * number);

  for (const kiln_tensor &tensor : tensors)
    kiln_release(gpu, tensor.data);
  kiln_device_close(gpu);
  forgetCompiled(); // a compiled kernel keeps its context
}

// On a device whose launches end within the call there is nothing to order.
TEST(Streams, AreNothingToACpu) {
  kiln_device *cpu = nullptr;
  ASSERT_EQ(kiln_device_open("cpu", &cpu), KILN_OK) << kiln_error();
  EXPECT_EQ(kiln_after(cpu, nullptr), KILN_OK) << kiln_error();
  EXPECT_EQ(kiln_before(cpu, nullptr), KILN_OK) << kiln_error();
  EXPECT_EQ(kiln_before(nullptr, nullptr), KILN_USER);
  kiln_device_close(cpu);
}

} // namespace
