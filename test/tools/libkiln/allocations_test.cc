// Launches from C allocate nothing of their own.

#include "tools/libkiln/handles.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <new>
#include <vector>

using namespace kiln;

static thread_local int64_t allocations = 0;

void *operator new(size_t size) {
  ++allocations;
  if (void *const memory = std::malloc(size))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }

namespace {

void touchNothing(View, View, View, View, View, View, Tile) {}
const Kernel idle = kernel("idle", touchNothing);

constexpr std::array<int64_t, 3> one = {1, 1, 1};

// A repeated launch allocates as often as one of C++ whose arguments exist already.
TEST(Launches, UseTheMemoryOfTheLastOne) {
  const std::shared_ptr<Device> device = Device::open("cpu");
  kiln_device *handle = nullptr;
  ASSERT_EQ(kiln_device_open("cpu", &handle), KILN_OK) << kiln_error();
  ASSERT_EQ(kiln_device_threads(handle, 1), KILN_OK) << kiln_error();
  device->setThreads(1);
  std::array<float, 64> memory = {};
  std::array<int64_t, 2> shape = {8, 8};
  const kiln_tensor tensor = {memory.data(), 1, 0, 2, 2, 32, 1, shape.data(), nullptr, 0};
  std::array<kiln_argument, 7> arguments;
  arguments.fill(kiln_write(&tensor));
  arguments[6] = kiln_real(32, 0.5);
  std::vector<Arg> args(6, TensorRef::dense(memory.data(), f32, {8, 8}));
  args.emplace_back(0.5f);
  const kiln_kernel kernel = {&idle};
  const auto allocationsOf = [](auto launches) {
    launches(); // compiles
    launches(); // enters the arguments' facts in the cache
    const int64_t before = allocations;
    launches();
    return allocations - before;
  };
  const int64_t fromC = allocationsOf([&] {
    EXPECT_EQ(kiln_launch(handle, &kernel, one.data(), arguments.data(), arguments.size(), nullptr), KILN_OK)
        << kiln_error();
  });
  EXPECT_EQ(fromC, allocationsOf([&] { launch(*device, idle, programs(1), args); }));
  kiln_device_close(handle);
}

} // namespace
