// Tensors, the conversion of their elements, and devices that cannot be had.

#include "runtime/AvailableMemory.h"
#include "runtime/Tensor.h"
#include "test/expect_error.h"
#include "test/temporary_folder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

using namespace kiln;

namespace {

uint16_t bitsOf(double value, Type type) {
  uint16_t bits = 0;
  fromDoubles({value}, type, &bits);
  return bits;
}

// Every bf16 and f16 that is a number is read back unchanged.
TEST(Conversion, ReturnsEveryHalfAsItWas) {
  for (const Type type : {bf16, f16})
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const uint16_t half = static_cast<uint16_t>(bits);
      const double value = toDoubles(&half, type, 1)[0];
      if (std::isnan(value))
        ASSERT_TRUE(std::isnan(toDoubles(std::vector<uint16_t>{bitsOf(value, type)}.data(), type, 1)[0]));
      else
        ASSERT_EQ(bitsOf(value, type), half) << nameOf(type);
    }
}

// Halfway between two neighbours the even one is taken; the least bit beyond halfway decides otherwise, also when it
// would be lost in a float on the way.
TEST(Conversion, RoundsToNearestEven) {
  const double tiny = std::ldexp(1.0, -50);
  for (const auto &[type, step] : {std::pair(bf16, std::ldexp(1.0, -7)), std::pair(f16, std::ldexp(1.0, -10))}) {
    const uint16_t one = bitsOf(1, type);
    EXPECT_EQ(bitsOf(1 + step / 2, type), one);
    EXPECT_EQ(bitsOf(1 + step / 2 + tiny, type), one + 1);
    EXPECT_EQ(bitsOf(1 + step / 2 - tiny, type), one);
    EXPECT_EQ(bitsOf(1 + step * 1.5, type), one + 2);
    EXPECT_EQ(bitsOf(1 + step * 1.5 - tiny, type), one + 1);
    EXPECT_EQ(bitsOf(-1 - step * 1.5, type), bitsOf(-1, type) + 2);
  }
}

TEST(Conversion, OverflowsToInfinityOnlyBeyondTheLastHalfway) {
  EXPECT_EQ(bitsOf(65504, f16), 0x7bff);
  EXPECT_EQ(bitsOf(65519.999, f16), 0x7bff);
  EXPECT_EQ(bitsOf(65520, f16), 0x7c00);
  EXPECT_EQ(bitsOf(1e300, bf16), 0x7f80);
  EXPECT_EQ(bitsOf(-infinity, bf16), 0xff80);
  EXPECT_EQ(bitsOf(3.38953138925153547590470800371487867e38, bf16), 0x7f7f); // the largest bf16
}

TEST(Conversion, SaturatesIntegers) {
  int8_t bytes[5];
  fromDoubles({300, -300, std::nan(""), 2.5, 3.5}, i8, bytes);
  EXPECT_EQ(bytes[0], 127);
  EXPECT_EQ(bytes[1], -128);
  EXPECT_EQ(bytes[2], 0);
  EXPECT_EQ(bytes[3], 2);
  EXPECT_EQ(bytes[4], 4);
  uint8_t naturals[4];
  fromDoubles({300, -300, std::nan(""), 199.5}, u8, naturals);
  EXPECT_EQ(naturals[0], 255);
  EXPECT_EQ(naturals[1], 0);
  EXPECT_EQ(naturals[2], 0);
  EXPECT_EQ(naturals[3], 200);
  uint64_t largest = 0;
  fromDoubles({1e30}, u64, &largest);
  EXPECT_EQ(largest, ~uint64_t(0));
  int64_t wide[2];
  fromDoubles({1e30, -1e30}, i64, wide);
  EXPECT_EQ(wide[0], std::numeric_limits<int64_t>::max());
  EXPECT_EQ(wide[1], std::numeric_limits<int64_t>::min());
}

class Tensors : public testing::Test {
protected:
  std::shared_ptr<Device> device = Device::open("cpu");
};

TEST_F(Tensors, AreZeroAndAlignedWhenMade) {
  for (const int64_t count : {1, 63, 4097, 1500001}) {
    Tensor tensor(device, f32, {count});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data()) % 256, 0u);
    EXPECT_EQ(tensor.downloadFloats(), std::vector<float>(count, 0));
  }
}

/// Whether large pages were requested for the mapping of `address`, from /proc/self/smaps.
bool asksForLargePages(uintptr_t address) {
  std::ifstream maps("/proc/self/smaps");
  bool holds = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2)
      holds = begin <= address && address < end;
    else if (holds && line.starts_with("VmFlags:"))
      return line.find(" hg") != std::string::npos;
  }
  return false;
}

// Whole pages of 2 MB only: the rest of a tensor takes no more memory than it needs.
TEST_F(Tensors, LieOnLargePagesAsFarAsWholeOnesFit) {
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"))
    GTEST_SKIP() << "the system has no large pages";
  constexpr int64_t page = 2 << 20;
  Tensor large(device, i8, {40 * page + page / 2});
  const uintptr_t begin = reinterpret_cast<uintptr_t>(large.data());
  EXPECT_EQ(begin % page, 0u);
  EXPECT_TRUE(asksForLargePages(begin));
  EXPECT_TRUE(asksForLargePages(begin + 40 * page - 1));
  EXPECT_FALSE(asksForLargePages(begin + 40 * page));
}

TEST_F(Tensors, ConvertFloatsOfEveryType) {
  const std::vector<float> values = {0, 1, 2, 3, -4, 100};
  for (const Type type : {i8, i16, i32, i64, bf16, f16, f32, f64}) {
    Tensor tensor(device, type, {2, 3});
    tensor.uploadFloats(values);
    EXPECT_EQ(tensor.downloadFloats(), values) << nameOf(type);
  }
}

TEST_F(Tensors, ConvertMoreThanOneChunk) {
  std::vector<float> values(5000);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i % 251);
  Tensor tensor(device, bf16, {5000});
  tensor.uploadFloats(values);
  EXPECT_EQ(tensor.downloadFloats(), values);
}

TEST_F(Tensors, MoveTheirMemory) {
  Tensor first(device, f32, {4});
  void *const data = first.data();
  Tensor second = std::move(first);
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(errorOf([&] { first.downloadFloats(); }),
            "expected a tensor on a device, but got one that is unset or was moved from");
}

TEST_F(Tensors, TellTheSizeOfAnUploadThatDoesNotFit) {
  Tensor tensor(device, bf16, {2, 3});
  EXPECT_EQ(errorOf([&] { tensor.upload("", 4); }), "expected an upload of 12 bytes, but got 4");
  EXPECT_EQ(errorOf([&] { tensor.uploadFloats({1, 2}); }), "expected an upload of 6 elements, but got 2");
}

// Extents whose product wraps are refused before memory is allocated, also beside an extent of 0.
TEST_F(Tensors, RefuseExtentsBeyond64Bits) {
  for (const Shape &extents : {Shape{0, int64_t{1} << 62, 8}, Shape{int64_t{1} << 62, 8}, Shape{-1, 4}})
    expectError([&] { Tensor(device, f32, extents); },
                {"expected a tensor's extents to be at least 0 and to fit memory, but got f32["});
}

TEST_F(Tensors, TellTheSizeOfMemoryThatThereIsNot) {
  EXPECT_EQ(errorOf([&] { Tensor(device, f32, {int64_t(1) << 50}); }),
            "out of memory: could not allocate 4503599627370496 bytes on device 'cpu'");
  EXPECT_EQ(errorOf([&] { Tensor(device, f32, {int64_t(1) << 32, int64_t(1) << 32}); }),
            "expected a tensor's extents to be at least 0 and to fit memory, but got f32[4294967296x4294967296]");
}

// A control group's limit counts as the system's memory does, in the files of both versions.
TEST(Memory, OfAControlGroupIsWhatItsLimitLeaves) {
  const TemporaryFolder version1, version2, none;
  const auto write = [](const std::string &path, const std::string &text) { std::ofstream(path) << text; };
  write(version2 / "memory.max", "1000\n");
  write(version2 / "memory.current", "700\n");
  write(version2 / "memory.stat", "anon 5\ninactive_file 50\n");
  EXPECT_EQ(availableInGroup(version2.path), 350);
  write(version2 / "memory.max", "max\n");
  EXPECT_EQ(availableInGroup(version2.path), std::numeric_limits<int64_t>::max());
  write(version1 / "memory.limit_in_bytes", "1000\n");
  write(version1 / "memory.usage_in_bytes", "1200\n");
  EXPECT_EQ(availableInGroup(version1.path), 0);
  EXPECT_EQ(availableInGroup(none.path), std::numeric_limits<int64_t>::max());
  EXPECT_GT(availableMemory(), 0);
}

// Available is what the system and all control groups around the process leave, in the files of both versions.
TEST(Memory, IsLimitedByTheSystemAndByEachGroupAroundTheProcess) {
  const TemporaryFolder root;
  const auto write = [&](const std::string &path, const std::string &text) {
    std::filesystem::create_directories(std::filesystem::path(root / path).parent_path());
    std::ofstream(root / path) << text;
  };
  const auto limit = [&](const std::string &group, const std::string &max, const std::string &current, int64_t bytes) {
    write(group + max, std::to_string(bytes + 100));
    write(group + current, "100");
  };
  write("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable: 4 kB\n");
  EXPECT_EQ(availableMemory(root.path), 4096);
  write("proc/self/cgroup", "3:cpu:/other\n0::/user/run\n4:memory:/job\n");
  EXPECT_EQ(availableMemory(root.path), 4096);
  limit("sys/fs/cgroup/other/", "memory.max", "memory.current", 1);
  EXPECT_EQ(availableMemory(root.path), 4096);
  limit("sys/fs/cgroup/user/", "memory.max", "memory.current", 3000);
  EXPECT_EQ(availableMemory(root.path), 3000);
  limit("sys/fs/cgroup/user/run/", "memory.max", "memory.current", 2000);
  EXPECT_EQ(availableMemory(root.path), 2000);
  limit("sys/fs/cgroup/memory/job/", "memory.limit_in_bytes", "memory.usage_in_bytes", 1000);
  EXPECT_EQ(availableMemory(root.path), 1000);
}

TEST(Devices, TellTheNamesThereAre) {
  EXPECT_EQ(errorOf([] { Device::open("gpu"); }),
            "unknown device 'gpu'; did you mean 'cuda:0'? (known: cpu, cpu:generic, cpu:x86-64-v3, cpu:x86-64-v4, "
            "cpu:amx, simulator:sm_80, simulator:sm_86, simulator:sm_89, simulator:sm_90a, simulator:sm_100a, "
            "simulator:sm_120, cuda:0)");
}

/// An architecture alone is not a device: it may be simulated, or be that of the GPU here.
TEST(Devices, SuggestTheNearest) {
  expectError([] { Device::open("sm_90a"); },
              {"unknown device 'sm_90a'; did you mean 'simulator:sm_90a' or 'cuda:0'?"});
  expectError([] { Device::open("cuda"); }, {"unknown device 'cuda'; did you mean 'cuda:0'?"});
  expectError([] { Device::open("cpu:0"); }, {"unknown device 'cpu:0'; did you mean 'cpu'?"});
  expectError([] { Device::open("simulator:sm_90"); }, {"did you mean 'simulator:sm_90a'?"});
  expectError([] { Device::open("simulator"); }, {"did you mean 'simulator:sm_80'?"});
}

/// A GPU by the name of its product.
TEST(Devices, SuggestTheArchitectureOfAGpu) {
  expectError([] { Device::open("simulator:h100"); }, {"did you mean 'simulator:sm_90a'?"});
  expectError([] { Device::open("simulator:b200"); }, {"did you mean 'simulator:sm_100a'?"});
  expectError([] { Device::open("a100"); }, {"did you mean 'simulator:sm_80' or 'cuda:0'?"});
}

TEST(Devices, TakeTheirThreadsFromTheEnvironment) {
  ::setenv("KILN_THREADS", "3", 1);
  EXPECT_EQ(Device::open("cpu")->threads(), 3);
  for (const char *text : {"0", "two", "2x", "-1", "4097", "99999999999"}) {
    ::setenv("KILN_THREADS", text, 1);
    EXPECT_EQ(errorOf([] { Device::open("cpu"); }),
              std::string("expected KILN_THREADS to be a number of threads from 1 to 4096, but got '") + text + "'");
  }
  ::unsetenv("KILN_THREADS");
  EXPECT_GE(Device::open("cpu")->threads(), 1);
}

} // namespace
