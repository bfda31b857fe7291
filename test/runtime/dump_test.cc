// Output for people: the stages of a compilation under KILN_DUMP, and the lines that kernels print.

#include "lowering/Abi.h"
#include "runtime/Compile.h"
#include "runtime/Tensor.h"
#include "test/devices.h"
#include "test/runtime/kernels.h"
#include "test/temporary_folder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <set>
#include <sys/resource.h>

using namespace kiln;
namespace fs = std::filesystem;

namespace {

class Dumps : public testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    ::setenv("KILN_DUMP", (folder / "dump").c_str(), 1);
    forgetCompiled();
  }
  void TearDown() override { ::unsetenv("KILN_DUMP"); }
  const TemporaryFolder folder;
};

/// Every stage of each kernel is a file, numbered in its order; a kernel in the cache on disk is compiled for it.
TEST_P(Dumps, HoldEveryStageOfEveryKernel) {
  const std::shared_ptr<Device> device = Device::open(GetParam());
  Tensor x(device, f32, {16}), y(device, f32, {16}), rows(device, f32, {16, 16});
  for (int again = 0; again < 2; ++again) {
    forgetCompiled();
    compile(*device, test::addKernel, {x.ref(), y.ref()});
  }
  compile(*device, test::rowSumsKernel, {rows.ref(), y.ref()});
  std::set<std::string> expected = {"00-tile.mlir"};
  if (GetParam() == test::oracleDevice)
    expected.insert({"01-linalg.mlir", "02-loops.mlir", "03-llvm-dialect.mlir", "04-llvm.ll", "05-asm.s"});
  else if (!GetParam().starts_with("cpu"))
    expected.insert(
        {"01-layouts.mlir", "02-exchanges.mlir", "03-simt.mlir", "04-llvm-dialect.mlir", "05-llvm.ll", "06-ptx.ptx"});
  else
    expected.insert({"01-loops.mlir", "02-llvm-dialect.mlir", "03-llvm.ll", "04-asm.s"});
  std::set<std::string> kernels;
  for (const auto &kernel : fs::directory_iterator(folder / "dump")) {
    const std::string name = kernel.path().filename().string();
    kernels.insert(name.substr(0, name.find('-')));
    std::set<std::string> stages;
    for (const auto &stage : fs::directory_iterator(kernel)) {
      stages.insert(stage.path().filename().string());
      EXPECT_GT(fs::file_size(stage), 0u) << stage.path();
    }
    EXPECT_EQ(stages, expected) << name;
  }
  EXPECT_EQ(kernels, (std::set<std::string>{"add", "row_sums"}));
}

KILN_ON_DEVICES_AND_DRIVER(Dumps);

// A folder that cannot be made is an error that names it.
TEST(DumpFolder, ThatCannotBeMadeIsTold) {
  ::setenv("KILN_DUMP", "/dev/null/dump", 1);
  const std::shared_ptr<Device> device = Device::open("cpu:generic");
  Tensor x(device, f32, {16}), y(device, f32, {16});
  try {
    compile(*device, test::addKernel, {x.ref(), y.ref()}, "block=5");
    ADD_FAILURE() << "expected an error";
  } catch (const Error &error) {
    EXPECT_EQ(std::string(error.what()),
              "expected KILN_DUMP to name a folder to write to, but got '/dev/null/dump': Not a directory");
    EXPECT_EQ(error.fault, Fault::device);
  }
  ::unsetenv("KILN_DUMP");
}

// If a disk is full, the error has the system's reason.
TEST(DumpFolder, ThatIsFullIsTold) {
  const TemporaryFolder folder;
  const std::shared_ptr<Device> device = Device::open("cpu:generic");
  Tensor x(device, f32, {16}), y(device, f32, {16});
  ::setenv("KILN_DUMP", folder.path.c_str(), 1);
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit;
  ::getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit none = {100, limit.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &none);
  std::string text;
  try {
    compile(*device, test::addKernel, {x.ref(), y.ref()}, "block=6");
  } catch (const Error &error) {
    text = error.what();
    EXPECT_EQ(error.fault, Fault::device);
  }
  ::setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, before);
  ::unsetenv("KILN_DUMP");
  EXPECT_TRUE(text.starts_with("expected to write '" + folder.path + "/add-")) << text;
  EXPECT_TRUE(text.ends_with("/00-tile.mlir' for KILN_DUMP, but could not: File too large")) << text;
}

// One line for each program, for every type; floats with the fewest digits that distinguish them.
TEST(Prints, AreLinesWithTheElementsInBrackets) {
  const float floats[] = {1, 0.1f, -2.5f, INFINITY};
  const int64_t pairs[] = {2, 2}, three[] = {3};
  const int8_t bytes[] = {-1, 0, 127};
  const int64_t wide = (int64_t(1) << 60) + 1; // no double
  testing::internal::CaptureStdout();
  kiln_print("x", 3, static_cast<int32_t>(f32), 2, pairs, floats);
  kiln_print("y", 0, static_cast<int32_t>(i8), 1, three, bytes);
  kiln_print("z", 1, static_cast<int32_t>(i64), 0, nullptr, &wide);
  std::fflush(stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "program 3: x = [[1, 0.1], [-2.5, inf]]\n"
                                                    "program 0: y = [-1, 0, 127]\n"
                                                    "program 1: z = 1152921504606846977\n");
}

} // namespace
