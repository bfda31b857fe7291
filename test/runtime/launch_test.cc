// Kernels from C++ to a result: traced, lowered, loaded and run over a grid.

#include "runtime/Compile.h"
#include "runtime/Tensor.h"
#include "test/devices.h"
#include "test/expect_error.h"
#include "test/runtime/kernels.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace kiln;
using namespace kiln::test;

namespace {

class Launches : public testing::TestWithParam<std::string> {
protected:
  std::shared_ptr<Device> device = Device::open(GetParam());
  Tensor tensor(const std::vector<float> &values) {
    Tensor result(device, f32, {static_cast<int64_t>(values.size())});
    result.uploadFloats(values);
    return result;
  }
};

/// Each program writes its coordinates, and the extents of its grid, at its number.
void places(View out) {
  Tile x = program_id(0), y = program_id(1), z = program_id(2), X = num_programs(0), Y = num_programs(1);
  store(out, {x + X * (y + Y * z)}, cast(x + 10 * y + 100 * z + 1000 * (X + 10 * Y), f32));
}
const Kernel placesKernel = kernel("places", places, {"out (N)"});

std::vector<float> counting(int64_t count, float first = 0) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

// Integer-valued data: every sum is exact, so that any slip of an index is an inequality.
TEST_P(Launches, AddsVectorsInPlaceAtEveryRaggedExtent) {
  for (const int64_t count : {1, 15, 16, 17, 33, 1000}) {
    Tensor x = tensor(counting(count)), y = tensor(counting(count, 7));
    launch(*device, addKernel, {cdiv(count, 16), 1, 1}, {x.ref(), y.ref()});
    device->synchronize();
    const std::vector<float> got = x.downloadFloats();
    for (int64_t i = 0; i < count; ++i)
      ASSERT_EQ(got[i], static_cast<float>(2 * i + 7)) << "at " << i << " of " << count;
  }
}

// The part of the tensor outside the view must be unchanged.
TEST_P(Launches, WritesNothingBeyondAView) {
  Tensor x = tensor(counting(40)), y = tensor(counting(40));
  launch(*device, addKernel, {2, 1, 1}, {x.ref().slice(0, 3, 21), y.ref().slice(0, 3, 21)});
  const std::vector<float> got = x.downloadFloats();
  for (int i = 0; i < 40; ++i)
    ASSERT_EQ(got[i], static_cast<float>(i >= 3 && i < 24 ? 2 * i : i)) << "at " << i;
}

// A launch of several problems has the results of separate launches: for other extents, alignments and strides, and for
// no programs at all.
TEST_P(Launches, DoesSeveralProblems) {
  Tensor x = tensor(counting(400)), y = tensor(counting(400, 7));
  struct Part {
    int64_t begin, count;
  };
  const std::vector<Part> parts = {{0, 100}, {101, 33}, {140, 0}, {150, 1}, {160, 48}};
  std::vector<Launch> launches;
  std::vector<float> want = counting(400);
  for (const auto &[begin, count] : parts) {
    launches.push_back(
        {&addKernel, "", cdiv(count, 16), {x.ref().slice(0, begin, count), y.ref().slice(0, begin, count)}});
    for (int64_t i = begin; i < begin + count; ++i)
      want[i] = static_cast<float>(2 * i + 7);
  }
  const std::vector<Launch> group = grouped(launches);
  ASSERT_EQ(group.size(), 1u);
  run(*device, {.launches = group});
  device->synchronize();
  EXPECT_EQ(x.downloadFloats(), want);
}

// Programs of a grid with three axes have the coordinates of their problem.
TEST_P(Launches, ProblemsHaveGridsOfTheirOwn) {
  Tensor all(device, f32, {3, 60});
  const std::vector<Grid> grids = {{2, 3, 4}, {5, 1, 2}, {1, 4, 3}};
  std::vector<Launch> launches;
  std::vector<float> want(3 * 60, 0);
  for (size_t i = 0; i < grids.size(); ++i) {
    const auto [X, Y, Z] = static_cast<const std::array<int64_t, 3> &>(grids[i]);
    launches.push_back({&placesKernel, "", grids[i], {all.ref().select(0, static_cast<int64_t>(i))}});
    for (int64_t p = 0; p < X * Y * Z; ++p)
      want[i * 60 + p] = static_cast<float>(p % X + 10 * (p / X % Y) + 100 * (p / X / Y) + 1000 * (X + 10 * Y));
  }
  run(*device, {.launches = grouped(launches)});
  device->synchronize();
  EXPECT_EQ(all.downloadFloats(), want);
}

// Views with a stride other than 1 in their only dimension.
TEST_P(Launches, ReadsAndWritesStridedViews) {
  Tensor x(device, f32, {20, 3});
  x.uploadFloats(counting(60));
  launch(*device, scaleKernel, {2, 1, 1}, {x.ref().select(1, 1), 3.0f});
  const std::vector<float> got = x.downloadFloats();
  for (int i = 0; i < 60; ++i)
    ASSERT_EQ(got[i], static_cast<float>(i % 3 == 1 ? 3 * i : i)) << "at " << i;
}

TEST_P(Launches, RunsNothingForAnEmptyGrid) {
  Tensor x = tensor(counting(16));
  launch(*device, scaleKernel, {0, 5, 1}, {x.ref(), 0.0f});
  EXPECT_EQ(x.downloadFloats(), counting(16));
}

TEST_P(Launches, DecodesTheProgramFromALinearGrid) {
  Tensor out(device, i64, {4, 3, 2});
  launch(*device, coordinatesKernel, {2, 3, 4}, {out.ref()});
  const std::vector<float> got = out.downloadFloats();
  for (int z = 0, i = 0; z < 4; ++z)
    for (int y = 0; y < 3; ++y)
      for (int x = 0; x < 2; ++x, ++i)
        ASSERT_EQ(got[i], static_cast<float>(x + 10 * y + 100 * z));
}

// synchronize(), and only it, reports the first failing program and element, for any number of threads.
TEST_P(Launches, TellsFailedChecksWhenSynchronised) {
  std::vector<float> values = counting(64);
  values[22] = values[23] = values[50] = -1;
  Tensor x = tensor(values);
  device->setThreads(2);
  launch(*device, checkKernel, {16, 1, 1}, {x.ref()});
  expectError([&] { device->synchronize(); },
              {"x is negative", "'check_positive'", "kernels.h:", "program (5, 0, 0), element 2"});
  EXPECT_NO_THROW(device->synchronize());
}

// Sums of floats in an order that the kernel fixes: equal bits on one thread and on many.
TEST_P(Launches, GivesTheSameBitsAtAnyThreadCount) {
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 5}) {
    device->setThreads(threads);
    Tensor x(device, f32, {37, 129}), y(device, f32, {37});
    std::vector<float> values(37 * 129);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = 1.0f / static_cast<float>(i + 1);
    x.uploadFloats(values);
    launch(*device, rowSumsKernel, {37, 1, 1}, {x.ref(), y.ref()});
    results.push_back(y.downloadFloats());
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST_P(Launches, CopiesMemoryOntoItself) {
  for (const int64_t shift : {1, 0, -1, 40, -40}) {
    Tensor x = tensor(counting(64));
    const int64_t from = std::max<int64_t>(0, -shift), count = 64 - std::abs(shift);
    char *const begin = static_cast<char *>(x.data()) + from * bytesOf(f32);
    device->copy(begin + shift * bytesOf(f32), begin, count * bytesOf(f32));
    std::vector<float> expected = counting(64);
    std::copy_n(counting(64).begin() + from, count, expected.begin() + from + shift);
    EXPECT_EQ(x.downloadFloats(), expected) << "shifted by " << shift;
  }
}

/// An executable runs on devices of the name that it was compiled for, and others refuse it.
TEST(Launching, RefusesAnExecutableOfAnotherDevice) {
  const std::shared_ptr<Device> fast = Device::open("cpu"), oracle = Device::open("cpu:generic"),
                                again = Device::open("cpu");
  Tensor x(fast, f32, {16}), y(fast, f32, {16});
  const auto executable = compile(*fast, test::addKernel, {x, y});
  EXPECT_NO_THROW(again->launch(*executable, {1}, {x, y}));
  EXPECT_EQ(errorOf([&] { oracle->launch(*executable, {1}, {x, y}); }),
            "kernel 'add': expected an executable of device 'cpu:generic', but got one of 'cpu'");
}

KILN_ON_DEVICES_AND_DRIVER(Launches);

} // namespace
