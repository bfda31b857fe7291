// The cache on disk: what it stores comes back, whatever befalls the folder, its files or the processes that write
// them.

#include "runtime/Cache.h"
#include "runtime/Compile.h"
#include "runtime/Tensor.h"
#include "test/runtime/kernels.h"
#include "test/temporary_folder.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace kiln;
namespace fs = std::filesystem;

namespace {

constexpr int64_t plenty = int64_t(1) << 30;

std::vector<char> contentOf(int64_t bytes, int seed) {
  std::vector<char> content(bytes);
  for (int64_t i = 0; i < bytes; ++i)
    content[i] = static_cast<char>(i * 31 + seed);
  return content;
}

class Caches : public testing::Test {
protected:
  void TearDown() override { ::chmod(folder.c_str(), 0700); }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto &entry : fs::directory_iterator(folder))
      found.push_back(entry.path());
    return found;
  }
  const TemporaryFolder temporary;
  const std::string folder = temporary.path;
  const std::string key = sha256("key");
};

TEST_F(Caches, HashAsTheStandardSays) {
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_F(Caches, GiveBackWhatTheyWereGiven) {
  DiskCache cache(folder, plenty);
  EXPECT_FALSE(cache.load(key));
  for (const int64_t bytes : {0, 1, 100000}) {
    cache.store(key, contentOf(bytes, 3));
    EXPECT_EQ(cache.load(key), contentOf(bytes, 3));
    EXPECT_EQ(DiskCache(folder, plenty).load(key), contentOf(bytes, 3)) << "in another process";
  }
  EXPECT_FALSE(cache.load(sha256("another")));
}

TEST_F(Caches, MakeTheirFolderForTheUserAlone) {
  const std::string inner = folder + "/a/b";
  DiskCache(inner, plenty).store(key, contentOf(10, 0));
  struct stat status;
  ASSERT_EQ(::stat(inner.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

// Every place where a file can be cut, in the header and in the content.
TEST_F(Caches, DropEntriesThatWereCut) {
  DiskCache cache(folder, plenty);
  cache.store(key, contentOf(400, 1));
  const int64_t size = fs::file_size(files().at(0));
  for (int64_t cut = 0; cut < size; cut += cut < 200 ? 1 : 37) {
    cache.store(key, contentOf(400, 1));
    fs::resize_file(files().at(0), cut);
    ASSERT_FALSE(cache.load(key)) << "cut at " << cut;
    ASSERT_TRUE(files().empty()) << "cut at " << cut;
  }
}

// One flipped bit anywhere, and bytes too many.
TEST_F(Caches, DropEntriesThatWereAltered) {
  DiskCache cache(folder, plenty);
  cache.store(key, contentOf(400, 1));
  const fs::path file = files().at(0);
  const int64_t size = fs::file_size(file);
  for (int64_t place = 0; place < size; place += place < 200 ? 1 : 37) {
    cache.store(key, contentOf(400, 1));
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(place);
    const int byte = stream.get();
    stream.seekp(place);
    stream.put(static_cast<char>(byte ^ 4));
    stream.close();
    ASSERT_FALSE(cache.load(key)) << "altered at " << place;
  }
  cache.store(key, contentOf(400, 1));
  std::ofstream(file, std::ios::app) << "more";
  EXPECT_FALSE(cache.load(key));
}

// An entry under another key's name is not that key's.
TEST_F(Caches, DropEntriesThatWereRenamed) {
  DiskCache cache(folder, plenty);
  cache.store(key, contentOf(400, 1));
  const std::string other = sha256("other");
  std::string path = files().at(0).string();
  const std::string before = path;
  path.replace(path.find(key), key.size(), other);
  fs::rename(before, path);
  EXPECT_FALSE(cache.load(other));
}

TEST_F(Caches, StayWithinTheirSizeAndForgetTheOldestUseFirst) {
  DiskCache cache(folder, 10000);
  std::vector<std::string> keys;
  for (int i = 0; i < 12; ++i)
    keys.push_back(sha256(std::to_string(i)));
  for (int i = 0; i < 12; ++i) {
    cache.store(keys[i], contentOf(2000, i));
    ::usleep(15000); // the file system's clock must tell the uses apart
    if (i > 0)
      cache.load(keys[0]); // used after every store: must stay
    ::usleep(15000);
    int64_t total = 0;
    for (const fs::path &file : files())
      total += fs::file_size(file);
    ASSERT_LE(total, 10000);
  }
  EXPECT_TRUE(cache.load(keys[0]));
  EXPECT_TRUE(cache.load(keys[11]));
  EXPECT_FALSE(cache.load(keys[1]));
  EXPECT_FALSE(cache.load(keys[5]));
}

TEST_F(Caches, DoNotStoreWhatIsLargerThanAll) {
  DiskCache cache(folder, 1000);
  cache.store(key, contentOf(1000, 1));
  EXPECT_TRUE(files().empty());
}

// Temporary files of processes that died are removed once they are old; young ones may belong to a living writer.
TEST_F(Caches, RemoveWhatDeadProcessesLeft) {
  const std::string old = folder + "/" + key + ".1.0.tmp", young = folder + "/" + key + ".2.0.tmp";
  std::ofstream(old) << "half";
  std::ofstream(young) << "half";
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(1));
  DiskCache cache(folder, plenty);
  cache.store(key, contentOf(10, 1));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young));
}

// What is said when the folder cannot be used: once for the process, however many caches and stores. Each case runs in
// a child, for the saying is once a process.
std::string saidBy(const std::function<void()> &action) {
  int pipe[2];
  if (::pipe(pipe) != 0)
    return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(pipe[1], 2);
    action();
    ::_exit(0);
  }
  ::close(pipe[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = ::read(pipe[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, got);
  ::close(pipe[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? text : text + " (died)";
}

TEST_F(Caches, SayOnceThatTheirFolderCannotBeUsed) {
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

TEST_F(Caches, RefuseAFolderThatOthersMayWriteTo) {
  ::chmod(folder.c_str(), 0777);
  const std::string text = saidBy([&] { DiskCache(folder, plenty).store(key, contentOf(10, 1)); });
  EXPECT_NE(text.find("others may write to it"), std::string::npos) << text;
  EXPECT_TRUE(files().empty());
}

// A full disk, as a limit on the size of files: the write fails half way.
TEST_F(Caches, DoWithoutWhenTheDiskIsFull) {
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

// A disk that fills up takes no more entries, and the ones on it still serve.
TEST_F(Caches, ServeFromAFullDisk) {
  const std::string first = sha256("first");
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

// Whatever stands where an entry should: nothing is read from it, and nothing waits for it.
TEST_F(Caches, ReadNothingButFiles) {
  const std::string entry = folder + "/" + key + ".o";
  ASSERT_EQ(::mkfifo(entry.c_str(), 0600), 0);
  EXPECT_FALSE(DiskCache(folder, plenty).load(key));
  ASSERT_EQ(::mkdir(entry.c_str(), 0700), 0);
  EXPECT_FALSE(DiskCache(folder, plenty).load(key));
}

// The XDG specification has relative paths ignored: they would be another cache in every folder.
TEST_F(Caches, IgnoreARelativeXdgFolder) {
  saidBy([&] {
    ::unsetenv("KILN_CACHE");
    ::setenv("XDG_CACHE_HOME", "relative", 1);
    ::setenv("HOME", folder.c_str(), 1);
    if (::chdir(folder.c_str()) == 0)
      DiskCache::fromEnvironment().store(key, contentOf(10, 1));
  });
  EXPECT_FALSE(fs::exists(folder + "/relative"));
  EXPECT_TRUE(fs::exists(folder + "/.cache/kiln/" + key + ".o"));
}

// Killed at some point of writing, 200 times; then whatever is there is whole.
TEST_F(Caches, SurviveKillsWhileWriting) {
  const auto contentFor = [](int i) { return contentOf(30000 + i, i); };
  for (int round = 0; round < 200; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      DiskCache cache(folder, plenty);
      for (int i = round;; ++i)
        cache.store(sha256(std::to_string(i % 50)), contentFor(i % 50));
    }
    ::usleep(500 + round * 97 % 4000);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  DiskCache cache(folder, plenty);
  int there = 0;
  for (const fs::path &file : files())
    there += file.extension() == ".o";
  ASSERT_GT(there, 0);
  int whole = 0;
  for (int i = 0; i < 50; ++i)
    if (const auto content = cache.load(sha256(std::to_string(i)))) {
      ASSERT_EQ(*content, contentFor(i));
      ++whole;
    }
  EXPECT_EQ(whole, there) << "entries that were not whole";
}

// --- Through compile() -----------------------------------------------------------------------------------------------

/// Compiles and runs four kernels with KILN_CACHE at `folder` in a child; its exit status and what it compiled.
struct Outcome {
  int status = 0, compiled = 0, fromDisk = 0;
};

pid_t compileInChild(const std::string &folder, const std::string &report) {
  const pid_t child = ::fork();
  if (child != 0)
    return child;
  ::setenv("KILN_CACHE", folder.c_str(), 1);
  ::unsetenv("KILN_DUMP");
  ::setenv("KILN_THREADS", "1", 1);
  int status = 1;
  try {
    const auto device = Device::open("cpu:generic");
    Tensor x(device, f32, {33}), y(device, f32, {33});
    std::vector<float> values(33);
    std::iota(values.begin(), values.end(), 0.0f);
    y.uploadFloats(values);
    for (const char *block : {"1", "3", "16", "33"})
      launch(*device, test::addKernel, {ceildiv(33, std::stoi(block)), 1, 1}, {x.ref(), y.ref()},
             std::string("block=") + block);
    for (float &value : values)
      value *= 4;
    status = x.downloadFloats() == values ? 0 : 2;
    const CompileStatistics statistics = compileStatistics();
    std::ofstream(report) << statistics.compiled << " " << statistics.fromDisk;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  ::_exit(status);
}

Outcome join(pid_t child, const std::string &report) {
  Outcome outcome;
  ::waitpid(child, &outcome.status, 0);
  std::ifstream(report) >> outcome.compiled >> outcome.fromDisk;
  return outcome;
}

TEST_F(Caches, SpareTheSecondProcessTheCompilations) {
  const std::string cache = folder + "/cache", report = folder + "/report";
  const Outcome first = join(compileInChild(cache, report), report);
  EXPECT_EQ(first.status, 0);
  EXPECT_EQ(first.compiled, 4);
  const Outcome second = join(compileInChild(cache, report), report);
  EXPECT_EQ(second.status, 0);
  EXPECT_EQ(second.compiled, 0);
  EXPECT_EQ(second.fromDisk, 4);
}

TEST_F(Caches, ServeSixteenProcessesAtOnce) {
  const std::string cache = folder + "/cache";
  std::vector<pid_t> children;
  for (int i = 0; i < 16; ++i)
    children.push_back(compileInChild(cache, folder + "/report" + std::to_string(i)));
  for (int i = 0; i < 16; ++i)
    EXPECT_EQ(join(children[i], folder + "/report" + std::to_string(i)).status, 0);
  int entries = 0;
  for (const auto &entry : fs::directory_iterator(cache))
    entries += entry.path().extension() == ".o";
  EXPECT_EQ(entries, 4);
}

// A damaged entry is compiled again and replaced.
TEST_F(Caches, RebuildADamagedEntry) {
  const std::string cache = folder + "/cache", report = folder + "/report";
  join(compileInChild(cache, report), report);
  for (const auto &entry : fs::directory_iterator(cache)) {
    fs::resize_file(entry.path(), fs::file_size(entry.path()) / 2);
    break;
  }
  const Outcome second = join(compileInChild(cache, report), report);
  EXPECT_EQ(second.status, 0);
  EXPECT_EQ(second.compiled, 1);
  EXPECT_EQ(second.fromDisk, 3);
}

} // namespace
