// Input files: anything that is not a regular file is refused without blocking. Output files: a replaced file keeps its
// mode, and leftovers of other processes do not disturb.

#include "dialect/dsl/Types.h"
#include "runtime/Files.h"
#include "runtime/Npy.h"
#include "test/expect_error.h"
#include "test/temporary_folder.h"

#include <cerrno>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <iterator>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace kiln;

namespace {

/// The fault of the Error that `action` throws, whose text must have `part` in it.
template <class Action> Fault faultOf(Action action, const std::string &part) {
  try {
    action();
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    return error.fault;
  }
  ADD_FAILURE() << "expected an error with '" << part << "'";
  return Fault::internal;
}

TEST(InputFile, ReadsAnyPart) {
  const TemporaryFolder folder;
  writeText(folder / "file", "0123456789");
  const InputFile file(folder / "file");
  EXPECT_EQ(file.size(), 10);
  std::string got(4, ' ');
  file.read(3, got.data(), 4);
  EXPECT_EQ(got, "3456");
  EXPECT_EQ(faultOf([&] { file.read(8, got.data(), 4); }, "became shorter"), Fault::device);
}

// A run removes old checkpoints while others read them.
TEST(InputFile, OutlivesItsName) {
  const TemporaryFolder folder;
  writeText(folder / "file", "0123456789");
  const InputFile file(folder / "file");
  std::filesystem::remove(folder / "file");
  std::string got(10, ' ');
  file.read(0, got.data(), 10);
  EXPECT_EQ(got, "0123456789");
}

TEST(InputFile, WhatIsNoFileIsTheCallersFault) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  const std::pair<std::string, std::string> cases[] = {{folder / "none", "but there is none"},
                                                       {folder / "pipe/x", "but there is none"},
                                                       {folder.path, "but it is a folder"},
                                                       {folder / "pipe", "but it is a pipe"},
                                                       {"/dev/zero", "but it is a device"}};
  for (const auto &[path, part] : cases) {
    EXPECT_EQ(faultOf([&] { InputFile file(path); }, part), Fault::user);
    EXPECT_EQ(faultOf([&] { readNpy(path); }, part), Fault::user);
  }
}

// Nor does writing an array block: the path is checked first, and a pipe is refused.
TEST(OutputFile, WhatIsNoFileIsTheCallersFault) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(faultOf([&] { expectFile(folder.path); }, "to be a file, but it is a folder"), Fault::user);
  EXPECT_EQ(faultOf([&] { expectFile(folder / "pipe"); }, "to be a file, but it is a pipe"), Fault::user);
  EXPECT_NO_THROW(expectFile(folder / "none"));
  writeOutput(folder / "file", "text");
  EXPECT_NO_THROW(expectFile(folder / "file"));
  EXPECT_EQ(readText(folder / "file"), "text");
}

TEST(InputFile, TooManyOpenFilesIsTheMachinesFault) {
  const TemporaryFolder folder;
  writeText(folder / "file", "x");
  rlimit before;
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none = {0, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  const Fault fault = faultOf([&] { InputFile file(folder / "file"); }, "Too many open files");
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(fault, Fault::device);
}

} // namespace

// --- Output ---------------------------------------------------------------------------------------------------------

/// The tests' replacement of fsync.
static std::function<int()> onSync;
extern "C" int fsync(int file) {
  if (const int error = onSync ? onSync() : 0) {
    errno = error;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fsync, file));
}

namespace {

std::string textIn(const std::string &path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

mode_t modeOf(const std::string &path) {
  struct stat status = {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_mode & 07777;
}

TEST(OutputFile, KeepsTheModeOfWhatItReplaces) {
  const TemporaryFolder folder;
  const std::string path = folder / "out";
  for (const mode_t mode : {0600, 0640, 0755}) {
    std::ofstream(path) << "before";
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    writeOutput(path, fmt::format("{:o}", mode));
    EXPECT_EQ(modeOf(path), mode);
    EXPECT_EQ(textIn(path), fmt::format("{:o}", mode));
  }
}

// A killed process may have had this one's number.
TEST(OutputFile, IsNotKeptFromItsNameByLeftovers) {
  const TemporaryFolder folder;
  const std::string path = folder / "out", leftover = fmt::format("{}.{}.tmp", path, ::getpid());
  std::ofstream(leftover) << "half";
  writeOutput(path, "whole");
  EXPECT_EQ(textIn(path), "whole");
  EXPECT_EQ(textIn(leftover), "half");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path), {}), 2);
}

// After a crash of the machine the file is complete, old or new: the new bytes are on the disk before they replace the
// old ones. If the disk does not accept them, the old ones stay.
TEST(OutputFile, IsOnTheDiskBeforeItReplacesAnother) {
  const TemporaryFolder folder;
  const std::string path = folder / "out";
  std::ofstream(path) << "before";
  int synced = 0;
  onSync = [&] {
    EXPECT_EQ(textIn(path), "before");
    return ++synced == 2 ? EIO : 0;
  };
  writeOutput(path, "before");
  EXPECT_EQ(synced, 1);
  EXPECT_THROW(writeOutput(path, "behind"), Error);
  EXPECT_EQ(textIn(path), "before");
  onSync = nullptr;
  writeOutput(path, "behind");
  EXPECT_EQ(textIn(path), "behind");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path), {}), 1);
}

} // namespace
