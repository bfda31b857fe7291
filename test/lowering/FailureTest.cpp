// A failed compilation leaves an error with its reason, a reproducer that runs, and a process that goes
// on compiling, in every thread.

#include "test/lowering/GoodKernel.h"

#include "lowering/Driver.h"

#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <thread>

using namespace kiln;
using kiln::test::expectGoodKernelCompiles, kiln::test::objectOf;

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

/// MLIR's frames would vanish without a word when an exception went through them: each action that is begun ends.
TEST(Failure, WhatAStagesReceiverThrowsCrossesNoFrameOfMlir) {
  mlir::DialectRegistry registry;
  lowering::registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  int begun = 0, ended = 0;
  context.registerActionHandler([&](llvm::function_ref<void()> action, const mlir::tracing::Action &) {
    ++begun;
    action();
    ++ended;
  });
  const auto module = mlir::parseSourceString<mlir::ModuleOp>(test::store42, &context);
  const auto backend = lowering::openBackend("cpu:generic"); // whose stages include one of a single function's passes
  for (const lowering::Stage &stage : backend->stages().drop_back()) { // the last is what compile returns
    int heard = 0;
    const auto throwAt = [&](const std::string &name, const std::string &) {
      heard += heard > 0 || name == stage.name;
      if (name == stage.name)
        throw std::out_of_range(name);
    };
    EXPECT_THROW(lowering::compile(*module, *backend, throwAt), std::out_of_range) << stage.name;
    EXPECT_EQ(heard, 1) << stage.name;
    EXPECT_GT(begun, 0) << stage.name;
    EXPECT_EQ(begun, ended) << stage.name;
  }
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

/// A pass fails on this: scratch memory whose rows lie apart, on a line that the error must name.
static constexpr const char *apart = R"mlir(
func.func @apart(%v: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %a = memref.alloca() : memref<4x4xf32, strided<[8, 1]>> loc("softmax.cc":17:3)
  %x = memref.load %a[%c0, %c0] : memref<4x4xf32, strided<[8, 1]>>
  memref.store %x, %v[%c0] : memref<?xf32, strided<[1]>>
  return
}
)mlir";

TEST(Failure, NamesTheSourceLine) {
  const DumpFolder folder;
  const std::string text = errorOf(apart, Fault::internal);
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
  const std::string command = commandOf(errorOf(apart, Fault::internal)), start = "kiln-opt --run-reproducer ";
  ASSERT_EQ(command.substr(0, start.size()), start);
  const std::filesystem::path file = command.substr(start.size());
  EXPECT_EQ(file.parent_path(), folder.path);
  std::ifstream stream(file);
  const std::string content((std::istreambuf_iterator<char>(stream)), {});
  EXPECT_NE(content.find("cpu-allocate-scratch"), std::string::npos) << content;
  EXPECT_NE(content.find("func.func @apart"), std::string::npos) << content;
  EXPECT_EQ(content.find("memref<?xi8>"), std::string::npos) << "expected the module before the passes, not after them";
}

/// The printed command fails in the same way again.
TEST(Failure, ReproducersReproduce) {
  const DumpFolder folder;
  const std::filesystem::path programs = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::filesystem::path log = folder.path / "log";
  const std::string command = commandOf(errorOf(apart, Fault::internal));
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

/// The reproducers in a folder.
static std::vector<std::filesystem::path> reproducersIn(const std::filesystem::path &folder) {
  std::vector<std::filesystem::path> found;
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename().string().starts_with("kiln-reproducer-"))
      found.push_back(entry.path());
  return found;
}

/// A kernel of its own for each line, that fails there.
static std::string failingAt(int line) {
  std::string text = apart;
  text.replace(text.find(":17:"), 4, ":" + std::to_string(line) + ":");
  text.replace(text.find("@apart"), 6, "@apart" + std::to_string(line));
  return text;
}

/// A mistake that a program runs into again and again fills no disk.
TEST(Failure, WritesOneReproducerForEachError) {
  const DumpFolder folder;
  const std::string command = commandOf(errorOf(unselectable, Fault::internal)); // has another address every time
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(commandOf(errorOf(unselectable, Fault::internal)), command);
  EXPECT_EQ(reproducersIn(folder.path).size(), 1u);
  errorOf(apart, Fault::internal);
  EXPECT_EQ(reproducersIn(folder.path).size(), 2u);
}

/// In a child, whose reproducers are not counted among those of the tests after this one, as those before it are.
TEST(Failure, WritesFewReproducers) {
  const DumpFolder folder;
  const auto failTwelveTimes = [] {
    std::string last;
    for (int line = 100; line < 112; ++line)
      last = errorOf(failingAt(line), Fault::internal);
    std::cerr << last;
    std::exit(0);
  };
  EXPECT_EXIT(failTwelveTimes(), testing::ExitedWithCode(0), "no reproducer was written: this process has written 8");
  EXPECT_GE(reproducersIn(folder.path).size(), 2u);
  EXPECT_LE(reproducersIn(folder.path).size(), 8u);
}

TEST(Failure, FillsNoFolderWithReproducers) {
  const DumpFolder folder;
  std::filesystem::create_directories(folder.path);
  for (int i = 0; i < 32; ++i)
    std::ofstream(folder.path / ("kiln-reproducer-" + std::to_string(i) + ".mlir")) << "an earlier one";
  const std::string text = errorOf(apart, Fault::internal);
  EXPECT_NE(text.find("has 32 of them; remove those called kiln-reproducer-*"), std::string::npos) << text;
  EXPECT_EQ(reproducersIn(folder.path).size(), 32u);
}

/// A reproducer is its user's alone, and what stands at its name is neither followed nor written to.
TEST(Failure, WritesReproducersForItsUserAlone) {
  const DumpFolder folder;
  const std::filesystem::path file = commandOf(errorOf(apart, Fault::internal)).substr(26);
  EXPECT_EQ(std::filesystem::status(file).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write)
      << file;
  std::filesystem::remove(file);
  std::filesystem::create_symlink(folder.path / "elsewhere", file);
  const std::string text = errorOf(apart, Fault::internal);
  EXPECT_NE(text.find("no reproducer was written: '" + file.string() + "': File exists"), std::string::npos) << text;
  EXPECT_FALSE(std::filesystem::exists(folder.path / "elsewhere"));
}

TEST(Failure, WritesNoLargeReproducers) {
  const DumpFolder folder;
  std::string text = apart;
  text.replace(text.find("tile.kernel"), 11, "tile.kernel, note = \"" + std::string(5 << 20, 'x') + "\"");
  const std::string error = errorOf(text, Fault::internal);
  EXPECT_NE(error.find("no reproducer was written: the module takes 52"), std::string::npos) << error;
  EXPECT_TRUE(!std::filesystem::exists(folder.path) || reproducersIn(folder.path).empty());
}

/// A kernel may be called anything; its reproducer stays in the folder.
TEST(Failure, WritesReproducersIntoTheFolderOnly) {
  const DumpFolder folder;
  std::string text = apart;
  text.replace(text.find("@apart"), 6, "@\"../../a b\"");
  const std::filesystem::path file = commandOf(errorOf(text, Fault::internal)).substr(26);
  EXPECT_EQ(file.parent_path(), folder.path) << file;
}

/// Without a folder to write to the error is told all the same.
TEST(Failure, SaysWhyThereIsNoReproducer) {
  setenv("KILN_DUMP", "/dev/null/folder", 1);
  const std::string text = errorOf(apart, Fault::internal);
  unsetenv("KILN_DUMP");
  EXPECT_NE(text.find("softmax.cc:17: error: expected a scratch buffer"), std::string::npos) << text;
  EXPECT_NE(text.find("no reproducer was written: '/dev/null/folder': Not a directory"), std::string::npos) << text;
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
  EXPECT_THROW(lowering::openBackend("zn4"), Error);
  try {
    lowering::openBackend("x86-64-v2");
    FAIL();
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find("'x86-64-v2' lacks avx2, fma, f16c, bmi2"), std::string::npos)
        << error.what();
  }
}
