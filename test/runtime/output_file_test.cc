// Output files: a replaced file keeps its mode, and leftovers of other processes do not disturb.

#include "dialect/dsl/Types.h"
#include "runtime/OutputFile.h"
#include "test/temporary_folder.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <iterator>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace kiln;

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
