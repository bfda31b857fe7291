// The console of a GPU is in memory that any kernel can write to: invalid lines are not read.

#include "runtime/Console.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

using namespace kiln;

namespace {

/// The output for a console with this line, followed by the numbers 1 and 2.
std::string printed(const kiln::abi::GpuLine &line) {
  const auto console = std::make_unique<kiln::abi::GpuConsole>();
  const int32_t numbers[] = {1, 2};
  console->printed = sizeof line + sizeof numbers;
  std::memcpy(console->lines, &line, sizeof line);
  std::memcpy(console->lines + sizeof line, numbers, sizeof numbers);
  testing::internal::CaptureStdout();
  const auto textOf = [](uint32_t) { return std::string("x"); };
  EXPECT_FALSE(readConsole(*console, "kernel", textOf, [](int64_t) { return Grid(1); }).has_value());
  return testing::internal::GetCapturedStdout();
}

TEST(GpuConsole, ReadsWholeLinesAlone) {
  const kiln::abi::GpuLine good = {.launch = 1,
                                   .program = 3,
                                   .label = 0,
                                   .type = static_cast<uint32_t>(i32),
                                   .rank = 1,
                                   .bytes = sizeof(kiln::abi::GpuLine) + 8,
                                   .extents = {2}};
  EXPECT_NE(printed(good).find("x"), std::string::npos);
  const auto changed = [&](auto change) {
    kiln::abi::GpuLine line = good;
    change(line);
    return printed(line);
  };
  EXPECT_EQ(changed([](kiln::abi::GpuLine &line) { line.rank = 1 << 20; }), "");
  EXPECT_EQ(changed([](kiln::abi::GpuLine &line) { line.type = 1000; }), "");
  EXPECT_EQ(changed([](kiln::abi::GpuLine &line) { line.extents[0] = 3; }), "");
  EXPECT_EQ(changed([](kiln::abi::GpuLine &line) { line.extents[0] = -1; }), "");
  EXPECT_EQ(changed([](kiln::abi::GpuLine &line) { line.extents[0] = int64_t{1} << 62; }), "");
  EXPECT_EQ(changed([](kiln::abi::GpuLine &line) { line.bytes = 8; }), "");
}

} // namespace
