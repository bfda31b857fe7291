// One owner per folder: a second one is refused, the lock of a dead process is ignored, and the folder may be removed
// or replaced during either.

#include "models/data/folder_lock.h"
#include "test/expect_error.h"
#include "test/temporary_folder.h"

#include <csignal>
#include <fcntl.h>
#include <functional>
#include <optional>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace kiln;

namespace {

/// Starts a process that does `action` and ends with its status.
pid_t inProcess(const std::function<int()> &action) {
  const pid_t child = fork();
  if (child == 0)
    _exit(action());
  return child;
}

int statusOf(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(FolderLock, ASecondOwnerIsRefusedAndToldOfTheFirst) {
  const TemporaryFolder folder;
  const FolderLock first(folder.path);
  expectError([&] { FolderLock second(folder.path); },
              {"expected a folder that no other run uses, but process " + std::to_string(getpid()), folder.path});
  EXPECT_TRUE(first.holds()); // the refused one has not taken the file away
  expectError([&] { FolderLock third(folder.path); }, {"process " + std::to_string(getpid())});
}

TEST(FolderLock, IsFreeWhenGivenBack) {
  const TemporaryFolder folder;
  {
    const FolderLock first(folder.path);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path));
  EXPECT_NO_THROW(FolderLock second(folder.path));
}

// A process that is killed leaves its file, and no lock.
TEST(FolderLock, DiesWithItsProcess) {
  const TemporaryFolder folder;
  const pid_t child = inProcess([&] {
    const FolderLock lock(folder.path);
    return raise(SIGKILL);
  });
  EXPECT_EQ(statusOf(child), 128 + SIGKILL);
  EXPECT_TRUE(std::filesystem::exists(folder / ".lock"));
  EXPECT_NO_THROW(FolderLock next(folder.path));
}

// Folders created for a lock are removed with it, unless files were added to them.
TEST(FolderLock, RemovesTheFoldersItMade) {
  const TemporaryFolder folder;
  {
    const FolderLock lock(folder / "a/b/c/");
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path));
  {
    const FolderLock lock(folder / "a/b/c");
    writeText(folder / "a/b/file", "x");
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "a/b/c"));
  EXPECT_TRUE(std::filesystem::exists(folder / "a/b/file"));
}

// An owner whose folder was removed or renamed notices, and does not remove the lock of a new folder of that name.
TEST(FolderLock, NoticesThatItsFolderWasReplaced) {
  const TemporaryFolder folder;
  std::optional<FolderLock> first(folder / "run");
  EXPECT_TRUE(first->holds());
  std::filesystem::rename(folder / "run", folder / "elsewhere");
  EXPECT_FALSE(first->holds());
  const FolderLock second(folder / "run");
  EXPECT_FALSE(first->holds());
  first.reset();
  EXPECT_TRUE(second.holds());
}

// A name that leads to no folder is the caller's fault, a folder that cannot be written the machine's.
TEST(FolderLock, SaysWhoseFaultItIs) {
  const TemporaryFolder folder;
  writeText(folder / "file", "x");
  std::filesystem::create_symlink(folder / "none", folder / "link");
  const std::pair<std::string, Fault> cases[] = {{folder / "file", Fault::user},
                                                 {folder / "file/run", Fault::user},
                                                 {folder / "link", Fault::user},
                                                 {"/proc/run", Fault::device}};
  for (const auto &[path, fault] : cases)
    try {
      FolderLock lock(path);
      ADD_FAILURE() << path;
    } catch (const Error &error) {
      EXPECT_EQ(error.fault, fault) << error.what();
    }
}

// Concurrent processes that each create and remove the folder and the file never hold the lock at once.
TEST(FolderLock, ThereIsNeverASecondOwner) {
  const TemporaryFolder folder;
  const auto work = [&] {
    for (int owned = 0; owned < 10;)
      try {
        const FolderLock lock(folder / "run");
        const int mark = open((folder / "mark").c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600);
        if (mark < 0)
          return 1;
        std::this_thread::yield();
        unlink((folder / "mark").c_str());
        close(mark);
        ++owned;
      } catch (const Error &error) {
        if (error.fault != Fault::user)
          return 2;
      }
    return 0;
  };
  std::vector<pid_t> children;
  for (int i = 0; i < 6; ++i)
    children.push_back(inProcess(work));
  for (const pid_t child : children)
    EXPECT_EQ(statusOf(child), 0);
}

// If a folder cannot be created, for example on a read-only file system, the error has its name and the reason.
TEST(FolderLock, AFolderThatCannotBeMadeIsNamed) {
  const std::string text = errorOf([] { FolderLock lock("/sys/kiln-test/run"); }); // which takes nobody's folders
  EXPECT_EQ(text.substr(0, text.find(": ")), "cannot make folder '/sys/kiln-test'");
}

} // namespace
