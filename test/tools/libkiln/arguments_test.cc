// Tensors in DLPack's form as arguments of libkiln: each wrong field is an error that names it, and each valid form of
// a tensor gives the same result.

#include "test/devices.h"
#include "tools/libkiln/kiln.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace kiln;

namespace {

/// A device that is open during this object's lifetime.
struct Opened {
  kiln_device *device = nullptr;
  explicit Opened(const char *name) { EXPECT_EQ(kiln_device_open(name, &device), KILN_OK) << kiln_error(); }
  ~Opened() { kiln_device_close(device); }
};

/// An f32 tensor of the host.
struct Floats {
  std::vector<int64_t> shape, strides;
  kiln_tensor tensor = {};

  Floats(float *data, std::vector<int64_t> extents, std::vector<int64_t> steps = {})
      : shape(std::move(extents)), strides(std::move(steps)) {
    tensor = {data,
              1,
              0,
              static_cast<int32_t>(shape.size()),
              2,
              32,
              1,
              shape.data(),
              strides.empty() ? nullptr : strides.data(),
              0};
  }
  Floats(const Floats &) = delete;
};

/// The status of `softmax` of x into out, after which all launches have ended.
kiln_status softmax(kiln_device *device, const kiln_tensor &x, const kiln_tensor &out) {
  const std::array arguments = {kiln_read(&x), kiln_write(&out)};
  const kiln_status status = kiln_operate(device, "softmax", arguments.data(), arguments.size(), nullptr);
  return status ? status : kiln_synchronize(device);
}

class ArgumentsTest : public testing::TestWithParam<const char *> {
protected:
  Opened opened{GetParam()};
  kiln_device *device = opened.device;
};

/// Expects an error whose text holds `text`.
void expectError(kiln_status status, const std::string &text) {
  EXPECT_EQ(status, KILN_USER);
  EXPECT_NE(std::string(kiln_error()).find(text), std::string::npos) << kiln_error();
}

// An offset in bytes, rows with gaps, and a row-major tensor with explicit strides have equal numbers.
TEST_P(ArgumentsTest, FormsOfATensorGiveTheSameResult) {
  std::vector<float> x(6 * 8 + 3);
  std::iota(x.begin(), x.end(), -7.0f);
  std::vector<float> want(12), got(12);
  std::vector<float> dense;
  for (int row = 0; row < 3; ++row)
    dense.insert(dense.end(), x.begin() + 3 + row * 16, x.begin() + 3 + row * 16 + 4);
  ASSERT_EQ(softmax(device, Floats(dense.data(), {3, 4}).tensor, Floats(want.data(), {3, 4}, {4, 1}).tensor), KILN_OK)
      << kiln_error();
  Floats strided(x.data(), {3, 4}, {16, 1});
  strided.tensor.byte_offset = 12;
  ASSERT_EQ(softmax(device, strided.tensor, Floats(got.data(), {3, 4}).tensor), KILN_OK) << kiln_error();
  EXPECT_EQ(got, want);
}

// A tensor without elements needs no memory, and nothing is written.
TEST_P(ArgumentsTest, EmptyTensorsNeedNoMemory) {
  EXPECT_EQ(softmax(device, Floats(nullptr, {0, 4}).tensor, Floats(nullptr, {0, 4}).tensor), KILN_OK) << kiln_error();
}

// A tensor of rank 0 is one number.
TEST_P(ArgumentsTest, RankZeroIsOneNumber) {
  float x = 3, y = 4, out = 0;
  const Floats fx(&x, {}), fy(&y, {}), fout(&out, {});
  const std::array arguments = {kiln_read(&fx.tensor), kiln_read(&fy.tensor), kiln_write(&fout.tensor)};
  ASSERT_EQ(kiln_operate(device, "add", arguments.data(), 3, nullptr), KILN_OK) << kiln_error();
  ASSERT_EQ(kiln_synchronize(device), KILN_OK) << kiln_error();
  EXPECT_EQ(out, 7);
}

// Each field that is wrong is named, and nothing runs.
TEST_P(ArgumentsTest, WrongFieldsAreNamed) {
  std::vector<float> x(16, 1.0f), out(16, 5.0f);
  const Floats good(out.data(), {4, 4});
  const auto with = [&](auto change) {
    Floats wrong(x.data(), {4, 4}, {4, 1});
    change(wrong.tensor);
    return softmax(device, wrong.tensor, good.tensor);
  };
  expectError(with([](kiln_tensor &t) { t.device_type = 2; }), "argument 0: expected memory of the host, where '");
  expectError(with([](kiln_tensor &t) { t.device_type = 2, t.device_id = 3; }), "computes, but it is on cuda:3");
  expectError(with([](kiln_tensor &t) { t.device_type = 8; }), "computes, but it is on DLPack's device (8, 0)");
  expectError(with([](kiln_tensor &t) { t.rank = 6; }), "rank 0 to 5, but got rank 6");
  expectError(with([](kiln_tensor &t) { t.rank = -1; }), "but got rank -1");
  expectError(with([](kiln_tensor &t) { t.shape = nullptr; }), "expected a shape");
  expectError(with([](kiln_tensor &t) { t.type_code = 5; }), "but got (5, 32, 1)");
  expectError(with([](kiln_tensor &t) { t.type_bits = 24; }), "but got (2, 24, 1)");
  expectError(with([](kiln_tensor &t) { t.lanes = 4; }), "but got (2, 32, 4)");
  expectError(with([](kiln_tensor &t) { t.data = nullptr; }), "expected memory");
  expectError(with([](kiln_tensor &t) { t.byte_offset = 2; }), "at a multiple of 4 bytes");
  expectError(with([](kiln_tensor &t) { t.shape[0] = -4; }), "extents from 0");
  expectError(with([](kiln_tensor &t) { t.shape[0] = 3; }), "'out'");
  EXPECT_EQ(out, std::vector<float>(16, 5.0f));
}

// A read-only tensor is no result, of an operator or of a kernel; the message names the operand.
TEST_P(ArgumentsTest, ReadOnlyTensorsAreNotWritten) {
  std::vector<float> x(8, 1.0f), out(8, 5.0f);
  const Floats fx(x.data(), {8}), fout(out.data(), {8});
  const std::array arguments = {kiln_read(&fx.tensor), kiln_read(&fx.tensor), kiln_read(&fout.tensor)};
  expectError(kiln_operate(device, "add", arguments.data(), 3, nullptr), "may be written for 'out'");
  kiln_library *builtIn = nullptr;
  const kiln_kernel *kernel = nullptr;
  ASSERT_EQ(kiln_library_open(nullptr, &builtIn), KILN_OK) << kiln_error();
  ASSERT_EQ(kiln_library_find(builtIn, "add", &kernel), KILN_OK) << kiln_error();
  const std::array<int64_t, 3> grid = {1, 1, 1};
  expectError(kiln_launch(device, kernel, grid.data(), arguments.data(), 3, nullptr), "may be written for 'out'");
  EXPECT_EQ(out, std::vector<float>(8, 5.0f));
  kiln_library_close(builtIn);
}

/// Changes one field of a tensor to something that no or hardly any tensor has.
void spoil(kiln_tensor &tensor, std::mt19937 &random) {
  const auto draw = [&](std::initializer_list<int64_t> values) { return values.begin()[random() % values.size()]; };
  const auto d = tensor.rank > 0 ? random() % static_cast<size_t>(tensor.rank) : 0;
  switch (random() % 10) {
  case 0:
    tensor.data = nullptr;
    break;
  case 1:
    tensor.device_type = static_cast<int32_t>(draw({0, 2, 3, 13, -1}));
    break;
  case 2:
    tensor.rank = static_cast<int32_t>(draw({-1, 0, 6, 1 << 30}));
    break;
  case 3:
    tensor.type_code = static_cast<uint8_t>(draw({0, 1, 4, 5, 255}));
    break;
  case 4:
    tensor.type_bits = static_cast<uint8_t>(draw({0, 1, 7, 16, 33}));
    break;
  case 5:
    tensor.lanes = static_cast<uint16_t>(draw({0, 2, 65535}));
    break;
  case 6:
    tensor.shape[d] = draw({-1, 0, INT64_MIN, INT64_MAX, int64_t{1} << 32});
    break;
  case 7:
    if (tensor.strides)
      tensor.strides[d] = draw({0, -1, INT64_MIN, INT64_MAX, INT64_MAX / 4});
    break;
  case 8:
    tensor.byte_offset = static_cast<uint64_t>(draw({1, 2, -4, INT64_MIN}));
    break;
  default:
    tensor.shape = nullptr;
  }
}

// For any fields of a tensor and any call, the call returns a status. A wrong extent or stride reaches beyond the
// memory, so nothing may be read before all operands are checked.
TEST_P(ArgumentsTest, SpoiltTensorsEndInAStatus) {
  std::mt19937 random(17);
  std::vector<float> memory(size_t{4} * 256, 0.5f); // the first quarter for a negative stride or offset
  int good = 0;
  const int draws = test::Tier::asked().all ? 5000 : 2500; // 10,000 on both devices
  for (int n = 0; n < draws; ++n) {
    const bool isMatrix = random() % 2;
    std::array<std::vector<int64_t>, 3> shapes, strides;
    std::array<kiln_tensor, 3> tensors = {};
    std::array<kiln_argument, 4> arguments = {}; // the last is one too many
    for (size_t i = 0; i < 3; ++i) {
      shapes[i] = isMatrix ? std::vector<int64_t>{4, 8} : std::vector<int64_t>{32};
      strides[i] = isMatrix ? std::vector<int64_t>{random() % 2 ? 8 : 16, 1} : std::vector<int64_t>{1};
      tensors[i] = {
          memory.data() + 256 * (i + 1), 1, 0, isMatrix ? 2 : 1, 2, 32, 1, shapes[i].data(), strides[i].data(), 0};
      if (random() % 4 == 0)
        tensors[i].strides = nullptr;
      arguments[i] = random() % 8 ? kiln_write(&tensors[i]) : kiln_read(&tensors[i]);
    }
    arguments[3] = arguments[0];
    if (random() % 4)
      spoil(tensors[random() % 3], random);
    const char *const name = isMatrix ? "softmax" : std::array{"add", "gelu", "total"}[random() % 3];
    const size_t count = std::string(name) == "add" ? 3 : 2;
    const kiln_status status = kiln_operate(device, name, arguments.data(), count + (random() % 16 == 0), nullptr);
    good += status == KILN_OK;
    ASSERT_TRUE(status == KILN_OK || status == KILN_USER || status == KILN_DEVICE) << status << ": " << kiln_error();
    if (kiln_synchronize(device)) // the simulator reports a result whose elements are one, by a stride of 0
      EXPECT_NE(std::string(kiln_error()).find("race-lanes: "), std::string::npos) << kiln_error();
  }
  EXPECT_GT(good, draws / 8); // and about a third has nothing wrong
}

// Threads that launch on one device concurrently get their own results.
TEST_P(ArgumentsTest, ThreadsMayLaunchAtOnce) {
  kiln_library *builtIn = nullptr;
  const kiln_kernel *kernel = nullptr;
  ASSERT_EQ(kiln_library_open(nullptr, &builtIn), KILN_OK) << kiln_error();
  ASSERT_EQ(kiln_library_find(builtIn, "add", &kernel), KILN_OK) << kiln_error();
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::vector<float> x(100, static_cast<float>(t)), y(100, 1.0f), out(100);
      const Floats fx(x.data(), {100}), fy(y.data(), {100}), fout(out.data(), {100});
      const std::array arguments = {kiln_read(&fx.tensor), kiln_read(&fy.tensor), kiln_write(&fout.tensor)};
      for (int n = 0; n < 10; ++n) {
        const std::array<int64_t, 3> grid = {1, 1, 1};
        if ((n % 2 ? kiln_operate(device, "add", arguments.data(), 3, nullptr)
                   : kiln_launch(device, kernel, grid.data(), arguments.data(), 3, nullptr)) ||
            kiln_synchronize(device))
          ++wrong;
        if (out != std::vector<float>(100, static_cast<float>(t + 1)))
          ++wrong;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0) << kiln_error();
  kiln_library_close(builtIn);
}

INSTANTIATE_TEST_SUITE_P(Devices, ArgumentsTest, testing::Values("cpu", "simulator:sm_80"), [](const auto &info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
});

// Host arrays are lent for one launch: the next launch lends the same ones, and memory after them is not written.
TEST(Simulator, BorrowsArraysForEachLaunch) {
  const Opened simulator("simulator:sm_80");
  std::vector<float> memory(64, 2.0f);
  const Floats x(memory.data(), {8}), out(memory.data() + 32, {8});
  const std::array arguments = {kiln_read(&x.tensor), kiln_read(&x.tensor), kiln_write(&out.tensor)};
  for (int n = 0; n < 2; ++n) {
    ASSERT_EQ(kiln_operate(simulator.device, "add", arguments.data(), 3, nullptr), KILN_OK) << kiln_error();
    ASSERT_EQ(kiln_synchronize(simulator.device), KILN_OK) << kiln_error();
  }
  EXPECT_EQ(memory[39], 4);
  EXPECT_EQ(memory[40], 2);
}

} // namespace
