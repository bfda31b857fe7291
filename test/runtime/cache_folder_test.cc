// The folder of the disk cache: its owner, its creation, and the behaviour if it cannot be used.

#include "test/runtime/caches.h"

#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <memory>
#include <sys/resource.h>

using namespace kiln;
using namespace kiln::test;
namespace fs = std::filesystem;

namespace {

class CacheFolders : public Caches {};

TEST_F(CacheFolders, MakeTheirFolderForTheUserAlone) {
  const std::string inner = folder + "/a/b";
  DiskCache(inner, plenty).store(key, contentOf(10, 0));
  struct stat status;
  ASSERT_EQ(::stat(inner.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(CacheFolders, SayOnceThatTheirFolderCannotBeUsed) {
  const std::string file = folder + "/file";
  std::ofstream(file) << "not a folder";
  const std::string text = saidBy([&] {
    for (int i = 0; i < 3; ++i) {
      DiskCache cache(file, plenty);
      cache.store(key, contentOf(10, 1));
      if (cache.load(key))
        ::_exit(1);
    }
  });
  EXPECT_EQ(text, "kiln: warning: compiled kernels are not kept in '" + file + "': it is not a folder\n");
}

TEST_F(CacheFolders, RefuseAFolderThatOthersMayWriteTo) {
  ::chmod(folder.c_str(), 0777);
  const std::string text = saidBy([&] { DiskCache(folder, plenty).store(key, contentOf(10, 1)); });
  EXPECT_NE(text.find("others may write to it"), std::string::npos) << text;
  EXPECT_TRUE(files().empty());
}

// A full disk, as a limit on the size of files: the write fails half way.
TEST_F(CacheFolders, DoWithoutWhenTheDiskIsFull) {
  const std::string text = saidBy([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    DiskCache cache(folder, plenty);
    cache.store(key, contentOf(5000, 1));
    cache.store(key, contentOf(5000, 1));
  });
  EXPECT_EQ(text, "kiln: warning: compiled kernels are not kept in '" + folder + "': File too large\n");
  EXPECT_TRUE(files().empty());
}

// If the disk becomes full, no entries are added, and existing ones are still read.
TEST_F(CacheFolders, ServeFromAFullDisk) {
  const std::string first = digestOf("first");
  saidBy([&] {
    DiskCache cache(folder, plenty);
    cache.store(first, contentOf(500, 2));
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    cache.store(key, contentOf(5000, 1));
    if (cache.load(first) == contentOf(500, 2))
      std::ofstream(folder + "/served") << "yes";
  });
  EXPECT_TRUE(fs::exists(folder + "/served"));
}

// The XDG specification has relative paths ignored: they would be another cache in every folder.
TEST_F(CacheFolders, IgnoreARelativeXdgFolder) {
  saidBy([&] {
    ::unsetenv("KILN_CACHE");
    ::setenv("XDG_CACHE_HOME", "relative", 1);
    ::setenv("HOME", folder.c_str(), 1);
    if (::chdir(folder.c_str()) == 0)
      DiskCache::fromEnvironment().store(key, contentOf(10, 1));
  });
  EXPECT_FALSE(fs::exists(folder + "/relative"));
  EXPECT_TRUE(fs::exists(folder + "/.cache/kiln/" + entryOf(key)));
}

mode_t modeOf(const std::string &path) {
  struct stat status;
  return ::lstat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

/// The error of using the folder at `path`; empty if it can be used.
std::string faultOf(const std::string &path) {
  const std::string key = digestOf("key");
  std::string text = saidBy([&] {
    DiskCache cache(path, plenty);
    cache.store(key, contentOf(10, 1));
    if (cache.load(key) != contentOf(10, 1))
      ::dprintf(2, "nothing was kept");
  });
  const std::string common = "kiln: warning: compiled kernels are not kept in '" + path + "': ";
  return text.starts_with(common) ? text.substr(common.size(), text.find('\n') - common.size()) : text;
}

// A user who may rename the folder's parent may put another folder in its place. In a sticky folder only the owner may.
TEST_F(CacheFolders, RefuseAParentThatOthersMayWriteTo) {
  const std::string parent = folder + "/parent";
  fs::create_directories(parent + "/a");
  for (const mode_t mode : {0720, 0702, 0777}) {
    ::chmod(parent.c_str(), mode);
    for (const char *below : {"/cache", "/a/cache"})
      EXPECT_EQ(faultOf(parent + below), "others may write to '" + parent + "' above it (chmod go-w closes it)");
  }
  EXPECT_FALSE(fs::exists(parent + "/cache"));
  ::chmod(parent.c_str(), 01777);
  EXPECT_EQ(faultOf(parent + "/a/cache"), "");
}

TEST_F(CacheFolders, RefuseAParentOfAnotherUser) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "only root can give a folder away";
  const std::string parent = folder + "/parent";
  fs::create_directories(parent + "/a/cache");
  ASSERT_EQ(::chown(parent.c_str(), 12345, 12345), 0);
  EXPECT_EQ(faultOf(parent + "/a/cache"), "'" + parent + "' above it belongs to another user");
  ASSERT_EQ(::chown(parent.c_str(), 0, 0), 0);
  ASSERT_EQ(::chown((parent + "/a/cache").c_str(), 12345, 12345), 0);
  EXPECT_EQ(faultOf(parent + "/a/cache"), "it belongs to another user");
}

// A home folder is often reached through a symbolic link. A link's target is checked like any other folder of the path.
TEST_F(CacheFolders, FollowLinksAboveTheFolderOnly) {
  fs::create_directories(folder + "/real");
  fs::create_symlink("real", folder + "/link");
  fs::create_symlink(folder + "/real/../link", folder + "/twice");
  EXPECT_EQ(faultOf(folder + "/twice/cache/"), "");
  EXPECT_TRUE(fs::is_directory(folder + "/real/cache"));
  EXPECT_EQ(faultOf(folder + "/link"), "it is not a folder");

  fs::create_directories(folder + "/open/inside");
  ::chmod((folder + "/open").c_str(), 0777);
  fs::create_symlink("open/inside", folder + "/astray");
  EXPECT_EQ(faultOf(folder + "/astray/cache"),
            "others may write to '" + folder + "/open' above it (chmod go-w closes it)");

  fs::create_symlink("circle", folder + "/circle");
  EXPECT_EQ(faultOf(folder + "/circle/cache"), "'" + folder + "/circle': Too many levels of symbolic links");
}

// With any umask, cache files are private to the user, who can use them.
TEST_F(CacheFolders, ArePrivateUnderAnyUmask) {
  for (const mode_t mask : {0, 022, 0777}) {
    const std::string outer = folder + "/" + std::to_string(mask), inner = outer + "/b/c";
    EXPECT_EQ(saidBy([&] {
                ::umask(mask);
                DiskCache(inner, plenty).store(key, contentOf(10, 0));
              }),
              "");
    for (const std::string &made : {outer, outer + "/b", inner})
      EXPECT_EQ(modeOf(made), 0700u) << made;
    EXPECT_EQ(modeOf(inner + "/" + entryOf(key)), 0600u) << mask;
  }
}

// The folder is used by its open descriptor, even if it is moved or the program changes its directory.
TEST_F(CacheFolders, StayTheSameWhenTheyOrTheProgramMove) {
  fs::create_directories(folder + "/elsewhere");
  EXPECT_EQ(saidBy([&] {
              if (::chdir(folder.c_str()) != 0)
                ::_exit(1);
              DiskCache cache("cache", plenty);
              if (::chdir("elsewhere") != 0)
                ::_exit(1);
              cache.store(key, contentOf(10, 1));
              fs::rename(folder + "/cache", folder + "/moved");
              cache.store(digestOf("second"), contentOf(10, 2));
              if (cache.load(key) != contentOf(10, 1))
                ::_exit(1);
            }),
            "");
  EXPECT_TRUE(fs::exists(folder + "/moved/" + entryOf(digestOf("second"))));
  EXPECT_FALSE(fs::exists(folder + "/cache"));
  EXPECT_TRUE(fs::is_empty(folder + "/elsewhere"));
}

// If the folder is removed during use, that is reported, and no other is made.
TEST_F(CacheFolders, SayThatTheyWereRemoved) {
  const std::string inner = folder + "/cache";
  const std::string text = saidBy([&] {
    DiskCache cache(inner, plenty);
    fs::remove_all(inner);
    cache.store(key, contentOf(10, 1));
  });
  EXPECT_NE(text.find("No such file or directory"), std::string::npos) << text;
  EXPECT_FALSE(fs::exists(inner));
}

// A daemon closes every descriptor that it did not open. The number may then be another folder's, which must not be
// used as the cache.
TEST_F(CacheFolders, DoNotUseADescriptorThatIsNoLongerTheirs) {
  const std::string inner = folder + "/cache", other = folder + "/other";
  fs::create_directories(other);
  const std::string text = saidBy([&] {
    const int number = ::open("/dev/null", O_RDONLY | O_CLOEXEC); // the next number is the cache's
    auto cache = std::make_unique<DiskCache>(inner, plenty);
    for (int i = number + 1; i < number + 10; ++i)
      if (::close(i) == 0)
        ::dup2(::open(other.c_str(), O_RDONLY | O_DIRECTORY), i);
    const int mine = number + 1;
    cache->store(key, contentOf(10, 1));
    cache.reset();
    if (::fcntl(mine, F_GETFD) < 0)
      ::dprintf(2, "the cache has closed a descriptor that was not its own");
  });
  EXPECT_EQ(text, "kiln: warning: compiled kernels are not kept in '" + inner + "': Bad file descriptor\n");
  EXPECT_TRUE(fs::is_empty(other));
}

// Child processes inherit none of the cache's descriptors.
TEST_F(CacheFolders, AreNotInheritedByOtherPrograms) {
  EXPECT_EQ(saidBy([&] {
              DiskCache cache(folder, plenty);
              cache.store(key, contentOf(10, 1));
              for (int number = 3; number < 100; ++number)
                if (const int flags = ::fcntl(number, F_GETFD); flags >= 0 && (flags & FD_CLOEXEC) == 0) {
                  std::error_code failure;
                  if (fs::read_symlink("/proc/self/fd/" + std::to_string(number), failure).string().starts_with(folder))
                    ::dprintf(2, "descriptor %d stays open", number);
                }
            }),
            "");
}

} // namespace
