// What a compilation that fails leaves behind: an error that says why, a reproducer that runs, and a process that goes
// on compiling, in every thread.

#include "test/lowering/Loaded.h"

#include "dialect/dsl/Types.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace kiln;
using kiln::test::ArgumentBlock, kiln::test::Loaded, kiln::test::objectOf;

static constexpr const char *store42 = R"mlir(
func.func @good(%a: memref<?xi64, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c42 = arith.constant 42 : i64
  memref.store %c42, %a[%c0] : memref<?xi64, strided<[1]>>
  return
}
)mlir";

/// LLVM's x86 backend cannot select an instruction of another machine: a fatal error deep inside code generation.
static constexpr const char *unselectable = R"mlir(
func.func @bad(%a: memref<?xi32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %x = llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.tid.x"() : () -> i32
  memref.store %x, %a[%c0] : memref<?xi32, strided<[1]>>
  return
}
)mlir";

static std::string errorOf(const std::string &mlir, Fault fault) {
  try {
    objectOf(mlir);
  } catch (const Error &error) {
    EXPECT_EQ(error.fault, fault) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "compiled";
  return "";
}

static void expectGoodKernelCompiles() {
  int64_t a = 0;
  ArgumentBlock block;
  Loaded(objectOf(store42), "good").run(block.pointer(&a).integer(1));
  EXPECT_EQ(a, 42);
}

/// A folder for reproducers that disappears again.
struct DumpFolder {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("kiln-failure-" + std::to_string(getpid()));
  DumpFolder() { setenv("KILN_DUMP", path.c_str(), 1); }
  ~DumpFolder() {
    unsetenv("KILN_DUMP");
    std::filesystem::remove_all(path);
  }
};

TEST(Failure, FatalErrorOfLlvmIsAnError) {
  const DumpFolder folder;
  const std::string text = errorOf(unselectable, Fault::internal);
  EXPECT_NE(text.find("internal error while compiling 'bad'"), std::string::npos) << text;
  EXPECT_NE(text.find("Cannot select"), std::string::npos) << text;
}

TEST(Failure, CompilingGoesOnAfterFatalErrors) {
  const DumpFolder folder;
  for (int round = 0; round < 3; ++round) {
    errorOf(unselectable, Fault::internal);
    expectGoodKernelCompiles();
  }
}

TEST(Failure, CompilingGoesOnInOtherThreads) {
  const DumpFolder folder;
  std::thread bad([] { errorOf(unselectable, Fault::internal); });
  std::thread good(expectGoodKernelCompiles);
  bad.join();
  good.join();
  std::thread([] {
    errorOf(unselectable, Fault::internal);
    expectGoodKernelCompiles();
  }).join();
  expectGoodKernelCompiles();
}

/// A pass fails on this: an alloca of dynamic shape, on a line that the error must name.
static constexpr const char *dynamicAlloca = R"mlir(
func.func @dynamic(%v: memref<?xf32, strided<[1]>>, %n64: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %n = arith.index_cast %n64 : i64 to index
  %a = memref.alloca(%n) : memref<?xf32> loc("softmax.cc":17:3)
  %x = memref.load %a[%c0] : memref<?xf32>
  memref.store %x, %v[%c0] : memref<?xf32, strided<[1]>>
  return
}
)mlir";

TEST(Failure, NamesTheSourceLine) {
  const DumpFolder folder;
  const std::string text = errorOf(dynamicAlloca, Fault::internal);
  EXPECT_NE(text.find("softmax.cc:17: error: expected a scratch buffer of static shape"), std::string::npos) << text;
}

/// The command of an error's last line, without the words before it; empty when there is none.
static std::string commandOf(const std::string &text) {
  const std::string words = "run it again with: ";
  const size_t at = text.find(words);
  return at == std::string::npos ? "" : text.substr(at + words.size());
}

TEST(Failure, WritesAReproducerIntoTheDumpFolder) {
  const DumpFolder folder;
  const std::string command = commandOf(errorOf(dynamicAlloca, Fault::internal)), start = "kiln-opt --run-reproducer ";
  ASSERT_EQ(command.substr(0, start.size()), start);
  const std::filesystem::path file = command.substr(start.size());
  EXPECT_EQ(file.parent_path(), folder.path);
  std::ifstream stream(file);
  const std::string content((std::istreambuf_iterator<char>(stream)), {});
  EXPECT_NE(content.find("cpu-allocate-scratch"), std::string::npos) << content;
  EXPECT_NE(content.find("func.func @dynamic"), std::string::npos) << content;
  EXPECT_EQ(content.find("memref<?xi8>"), std::string::npos) << "expected the module before the passes, not after them";
}

/// The printed command fails in the same way again.
TEST(Failure, ReproducersReproduce) {
  const DumpFolder folder;
  const std::filesystem::path programs = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::filesystem::path log = folder.path / "log";
  const std::string command = commandOf(errorOf(dynamicAlloca, Fault::internal));
  const int status = std::system((programs.string() + "/" + command + " > /dev/null 2> " + log.string()).c_str());
  EXPECT_NE(status, 0);
  std::ifstream stream(log);
  const std::string said((std::istreambuf_iterator<char>(stream)), {});
  EXPECT_NE(said.find("expected a scratch buffer of static shape"), std::string::npos) << said;
}

/// When the passes went well and LLVM failed, the command goes on where they end.
TEST(Failure, ReproducersOfLlvmGoOnWithLlc) {
  const DumpFolder folder;
  const std::string command = commandOf(errorOf(unselectable, Fault::internal));
  EXPECT_NE(command.find(" | mlir-translate-22 --mlir-to-llvmir | llc-22 -mcpu="), std::string::npos) << command;
}

/// Too much scratch memory is the kernel's mistake, not the compiler's: no reproducer, but advice.
TEST(Failure, TooMuchScratchIsAUserError) {
  const std::string text = errorOf(R"mlir(
func.func @huge(%v: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %a = memref.alloca() : memref<20000000xf32>
  %x = memref.load %a[%c0] : memref<20000000xf32>
  memref.store %x, %v[%c0] : memref<?xf32, strided<[1]>>
  return
}
)mlir",
                                   Fault::user);
  EXPECT_NE(text.find("kernel 'huge' needs 76.3 MiB of scratch memory for its tiles, but at most 64.0 MiB"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("reproducer"), std::string::npos) << text;
}

TEST(Failure, UnknownAndOldCpusAreErrors) {
  EXPECT_THROW(lowering::cpuNamed("zn4"), Error);
  try {
    lowering::cpuNamed("x86-64-v2");
    FAIL();
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find("'x86-64-v2' lacks avx2, fma, f16c, bmi2"), std::string::npos)
        << error.what();
  }
}
