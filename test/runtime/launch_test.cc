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

// --- Invalid arguments -----------------------------------------------------------------------------------------------

// Invalid arguments are refused by every function that launches, whether or not the executable is in memory.

constexpr int64_t huge = int64_t(1) << 62;

/// out += in for matrices, by tiles of 4 x 16.
void addMatrices(View out, View in) {
  Tile m = program_id(0) * 4;
  store(out, {m, 0}, load(out, {m, 0}, {4, 16}) + load(in, {m, 0}, {4, 16}));
}

class LaunchChecks : public testing::TestWithParam<std::string> {
protected:
  std::shared_ptr<Device> device = Device::open(GetParam());
  Tensor x{device, f32, {16, 16}}, y{device, f32, {16, 16}};
  const Kernel adding = kernel("adding", addMatrices, {"out", "in"});
  const Grid grid = 4;

  /// Calls `action(args, launch)` with each function that launches `adding`.
  template <class Action> void onEveryWay(const std::vector<Arg> &args, Action action) {
    const Kernel fresh = kernel("adding", addMatrices, {"out", "in"});
    const auto executable = compile(*device, adding, {x, y});
    Plan plan;
    plan.launches = {{&adding, "", grid, {x, y}}, {&adding, "", grid, args}};
    const std::pair<const char *, std::function<void()>> ways[] = {
        {"launch of a kernel that is new", [&] { launch(*device, fresh, grid, args); }},
        {"launch of a kernel in memory", [&] { launch(*device, adding, grid, args); }},
        {"prepare", [&] { prepare(*device, plan); }},
        {"run", [&] { run(*device, plan); }},
        {"launch of an executable", [&] { device->launch(*executable, grid, args); }}};
    for (const auto &[name, way] : ways) {
      SCOPED_TRACE(name);
      action(way);
    }
  }

  /// Every function that launches with x and `wrong` refuses `wrong` with the text `said`.
  void expectRefused(const Arg &wrong, const std::string &said) {
    onEveryWay({x, wrong},
               [&](const std::function<void()> &way) { expectError(way, {"kernel 'adding': expected 'in' ", said}); });
  }

  /// y's memory with these extents and strides.
  TensorRef view(Shape extents, Shape strides) const { return {y.data(), f32, std::move(extents), std::move(strides)}; }
};

TEST_P(LaunchChecks, RefuseATensorWithoutMemory) {
  expectRefused(TensorRef::dense(nullptr, f32, {16, 16}), "to have memory, but got f32[16x16] without");
  expectRefused(TensorRef(), "to have memory, but got f32[] without");
}

// Memory of another device is refused before the launch. Memory of unknown origin is the caller's responsibility, and
// all CPUs share the host's.
TEST_P(LaunchChecks, RefuseATensorOfAnotherDevice) {
  const std::shared_ptr<Device> other = Device::open(GetParam().starts_with("cpu") ? "simulator:sm_80" : "cpu");
  const Tensor away(other, f32, {32, 16});
  expectRefused(away.ref().slice(0, 16, 16).reshape({16, 16}),
                "to be on device '" + GetParam() + "', but got f32[16x16] on '" + other->name() + "'");
  TensorRef unknown = y.ref();
  unknown.device = nullptr;
  onEveryWay({x, unknown}, [](const std::function<void()> &way) { EXPECT_NO_THROW(way()); });
  const auto generic = Device::open("cpu:generic");
  if (other->name() != "cpu")
    EXPECT_NO_THROW(launch(*generic, adding, grid, {x, y}));
  const Kernel one = kernel("adding", addMatrices, {"out", "in"});
  const Plan plan = {.launches = {{&one, "", grid, {x, Arg::workspace(0, f32, {16, 16})}}}, .workspaceBytes = 1024};
  expectError([&] { prepare(*device, plan, away); },
              {"expected a workspace on device '" + GetParam() + "', but got one on '" + other->name() + "'"});
}

TEST_P(LaunchChecks, RefuseStridesThatAreNotOneForEachExtent) {
  expectRefused(view({16, 16}, {}), "to have a stride for each extent, but got 0 strides for f32[16x16]");
  expectRefused(view({16, 16}, {1}), "to have a stride for each extent, but got 1 strides for f32[16x16]");
  expectRefused(view({16, 16}, {16, 1, 1}), "to have a stride for each extent, but got 3 strides for f32[16x16]");
}

TEST_P(LaunchChecks, RefuseNegativeExtents) {
  expectRefused(view({-1, 16}, {16, 1}), "to have extents from 0 to 2^56, but got f32[-1x16]");
  expectRefused(view({0, -1}, {16, 1}), "to have extents from 0 to 2^56, but got f32[0x-1]");
  expectRefused(view({0, (int64_t{1} << 56) + 1}, {0, 0}), "to have extents from 0 to 2^56, but got");
}

// Positions that are one element may only be read. Where an extent is at most 1, or no element is there, a stride of 0
// repeats nothing.
TEST_P(LaunchChecks, RefuseToWriteRepeatedElements) {
  onEveryWay({view({16, 16}, {0, 1}), x}, [&](const std::function<void()> &way) {
    expectError(way,
                {"kernel 'adding': expected 'out', which the kernel writes, to have no stride 0, but dimension 0 of "
                 "f32[16x16] has"});
  });
  for (const std::vector<Arg> &fine :
       {std::vector<Arg>{x, view({16, 16}, {0, 1})}, {view({1, 16}, {0, 1}), x}, {view({16, 0}, {0, 1}), x}})
    onEveryWay(fine, [](const std::function<void()> &way) { EXPECT_NO_THROW(way()); });
}

// Strides of 0 make many elements of little memory; an extent of 0 makes none of much.
TEST_P(LaunchChecks, RefuseByteCountsBeyond64Bits) {
  const std::string said = "to take less than 2^63 bytes, but got f32[";
  expectRefused(view({int64_t{1} << 40, int64_t{1} << 40}, {0, 0}), said);
  expectRefused(view({int64_t{1} << 50, int64_t{1} << 11}, {0, 0}), said); // 2^63 bytes
}

TEST_P(LaunchChecks, RefuseElementsBeyondTheAddressesOfTheMachine) {
  const std::string said = "to lie within the machine's addresses, but got f32[";
  expectRefused(view({3, 16}, {huge, 1}), said);             // (3 − 1) · stride overflows
  expectRefused(view({2, 16}, {huge, 1}), said);             // its bytes overflow
  expectRefused(view({2, 2}, {huge / 4, huge / 4}), said);   // their sum does
  expectRefused(view({3, 2}, {-huge / 4, -huge / 4}), said); // as much downwards
  expectRefused(view({2, 16}, {-huge / 8, 1}), said);        // an address below 0
  expectRefused(view({2, 16}, {std::numeric_limits<int64_t>::min(), 1}), said);
}

// Code for a GPU moves vectors where the arguments that it was compiled for let it.
TEST(GpuLaunchChecks, RefuseWhatLacksTheFactsThatTheCodeReliesOn) {
  const std::shared_ptr<Device> device = Device::open("simulator:sm_80");
  const Tensor x(device, f32, {16, 32}), y(device, f32, {16, 32});
  const auto executable = compile(*device, kernel("adding", addMatrices, {"out", "in"}), {x, y});
  const auto refused = [&](int64_t offset, int64_t stride, int64_t extent, const std::string &said) {
    const TensorRef view{static_cast<float *>(y.data()) + offset, f32, {8, extent}, {stride, 1}};
    expectError([&] { device->launch(*executable, 4, {x, view}); }, {"kernel 'adding': expected 'in' to ", said});
  };
  refused(1, 32, 16, "be aligned to 64 bytes, as it was compiled for, but got f32[8x16] aligned to 1");
  refused(0, 24, 16, "have outer strides divisible by 16, as it was compiled for, but got f32[8x16] with strides");
  refused(0, 32, 24, "have a last extent divisible by 16, as it was compiled for, but got f32[8x24]");
  refused(0, 1 << 29, 16, "have extents to 2^30 and strides from 0 to 2^31 - 1 bytes, as it was compiled for, but got");
}

TEST_P(LaunchChecks, RefuseAScalarForATensor) {
  expectRefused(2.0f, ", but got f32 scalar");
  Tensor line(device, f32, {16});
  launch(*device, scaleKernel, 1, {line, 2.0f});
  expectError([&] { launch(*device, scaleKernel, 1, {line, line}); },
              {"kernel 'scale': expected 's' to be a scalar, but got f32[16]"});
}

TEST_P(LaunchChecks, RefuseAnotherNumberOfArguments) {
  for (const std::vector<Arg> &args : {std::vector<Arg>{x}, std::vector<Arg>{x, y, y}})
    onEveryWay(args, [&](const std::function<void()> &way) {
      expectError(way, {"kernel 'adding': expected 2 arguments, but got " + std::to_string(args.size())});
    });
}

TEST_P(LaunchChecks, RefuseARegionWithoutWorkspace) {
  const Arg region = Arg::workspace(64, f32, {16, 16});
  launch(*device, adding, grid, {x, y});
  const auto executable = compile(*device, adding, {x, y});
  const std::string said = "kernel 'adding': expected 'in' to lie in a workspace, but the launch has none";
  EXPECT_EQ(errorOf([&] { launch(*device, adding, grid, {x, region}); }), said);
  EXPECT_EQ(errorOf([&] { compile(*device, adding, {x, region}); }), said);
  EXPECT_EQ(errorOf([&] { device->launch(*executable, grid, {x, region}); }), said);
}

// Invalid regions of a workspace: too large, outside, or with gaps between them.
TEST_P(LaunchChecks, RefuseRegionsOutsideTheWorkspace) {
  Tensor workspace(device, i8, {2048});
  Plan plan;
  plan.workspaceBytes = 2048;
  const auto expectRefused = [&](const Arg &region, const std::string &said) {
    plan.launches = {{&adding, "", grid, {x, region}}};
    expectError([&] { run(*device, plan, workspace); }, {said});
  };
  run(*device, plan, workspace);
  const std::string said = "kernel 'adding': expected 'in' to lie in the plan's workspace of 2048 bytes, but got";
  expectRefused(Arg::workspace(1028, f32, {16, 16}), said);
  expectRefused(Arg::workspace(-4, f32, {16, 16}), said);
  expectRefused(Arg::workspace(std::numeric_limits<int64_t>::max(), f32, {16, 16}), said);
  EXPECT_EQ(errorOf([&] { run(*device, plan, TensorRef{workspace.data(), i8, {2048}, {2}}); }),
            "expected a workspace of dense memory, but got one of shape 2048 with strides 2");
}

TEST_P(LaunchChecks, RefuseALaunchWithoutKernel) {
  Plan plan;
  plan.launches = {{&adding, "", grid, {x, y}}, {nullptr, "", grid, {x, y}}};
  EXPECT_EQ(errorOf([&] { run(*device, plan); }), "expected launch 1 of a plan to have a kernel, but got none");
}

// Views without elements have no memory either; programs that run over them read padding and write nothing.
TEST_P(LaunchChecks, LetEmptyViewsPass) {
  x.uploadFloats(std::vector<float>(256, 3));
  for (const TensorRef &empty : {TensorRef::dense(nullptr, f32, {0, 16}), TensorRef::dense(nullptr, f32, {16, 0}),
                                 y.ref().slice(0, 16, 0), TensorRef::dense(nullptr, f32, {0, 0})}) {
    for (int again = 0; again < 2; ++again) {
      EXPECT_NO_THROW(launch(*device, adding, grid, {x, empty}));
      EXPECT_NO_THROW(launch(*device, adding, grid, {empty, x}));
      EXPECT_NO_THROW(launch(*device, adding, grid, {empty, empty}));
    }
    EXPECT_EQ(x.downloadFloats(), std::vector<float>(256, 3));
  }
}

// An executable is valid for its facts: code for views without overlap is wrong for views that overlap.
TEST_P(LaunchChecks, RefuseViewsThatAnExecutableIsNotFor) {
  const auto apart = compile(*device, adding, {x, y}), overlapping = compile(*device, adding, {x, x});
  EXPECT_EQ(errorOf([&] { device->launch(*apart, grid, {x, x}); }),
            "kernel 'adding': 'out' and 'in' overlap, but it was compiled for arguments that do not overlap");
  EXPECT_NO_THROW(device->launch(*overlapping, grid, {x, y}));
}

KILN_ON_DEVICES_AND_DRIVER(LaunchChecks);

} // namespace
