// The entries of the disk cache: stored ones are read back, damaged or foreign ones never.

#include "runtime/Compile.h"
#include "runtime/Tensor.h"
#include "test/runtime/caches.h"
#include "test/runtime/kernels.h"

#include <algorithm>
#include <csignal>
#include <dirent.h>
#include <dlfcn.h>
#include <fstream>
#include <numeric>

using namespace kiln;
using namespace kiln::test;

namespace fs = std::filesystem;

/// How often this process has begun to list a folder.
static int64_t listings = 0;
extern "C" DIR *fdopendir(int descriptor) {
  ++listings;
  return reinterpret_cast<DIR *(*)(int)>(::dlsym(RTLD_NEXT, "fdopendir"))(descriptor);
}

namespace {

TEST_F(Caches, HashAsTheirPaperSays) {
  EXPECT_EQ(digestOf("abc"), "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85");
}

TEST_F(Caches, GiveBackWhatTheyWereGiven) {
  DiskCache cache(folder, plenty);
  EXPECT_FALSE(cache.load(key));
  for (const int64_t bytes : {0, 1, 100000}) {
    cache.store(key, contentOf(bytes, 3));
    EXPECT_EQ(cache.load(key), contentOf(bytes, 3));
    EXPECT_EQ(DiskCache(folder, plenty).load(key), contentOf(bytes, 3)) << "in another process";
  }
  EXPECT_FALSE(cache.load(digestOf("another")));
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
  const std::string other = digestOf("other");
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
    keys.push_back(digestOf(std::to_string(i)));
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

// The folder is listed once for every thirty-second of the capacity that is stored, not at every store. Its size
// exceeds the capacity by at most that.
TEST_F(Caches, ListTheirFolderOnceForManyStores) {
  constexpr int64_t capacity = 1 << 20, stores = 1000, bytes = 2000;
  DiskCache cache(folder, capacity);
  const int64_t before = listings;
  for (int64_t i = 0; i < stores; ++i)
    cache.store(digestOf(std::to_string(i)), contentOf(bytes, i));
  EXPECT_LE(listings - before, stores * (bytes + 200) / (capacity / 32) + 1);
  int64_t total = 0;
  for (const fs::path &file : files())
    total += fs::file_size(file);
  EXPECT_LE(total, capacity + capacity / 32);
  EXPECT_GT(total, capacity / 2);
}

// Processes that store too little to list the folder at every start still keep it within its capacity, on average.
TEST_F(Caches, OfManyShortProcessesStayNearTheirSize) {
  constexpr int64_t capacity = 1 << 20;
  for (int64_t i = 0; i < 2000; ++i)
    DiskCache(folder, capacity).store(digestOf(std::to_string(i)), contentOf(2000, i));
  int64_t total = 0;
  for (const fs::path &file : files())
    total += fs::file_size(file);
  EXPECT_LE(total, capacity + capacity / 2); // 16 listings are missed in a row once in e¹⁶ times
}

TEST_F(Caches, DoNotStoreWhatIsLargerThanAll) {
  DiskCache cache(folder, 1000);
  cache.store(key, contentOf(1000, 1));
  EXPECT_TRUE(files().empty());
}

// Temporary files of dead processes are removed after some time; recent ones may belong to a running writer.
TEST_F(Caches, RemoveWhatDeadProcessesLeft) {
  const std::string old = folder + "/kiln-" + key + ".1.0.tmp", young = folder + "/kiln-" + key + ".2.0.tmp";
  std::ofstream(old) << "half";
  std::ofstream(young) << "half";
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(1));
  DiskCache cache(folder, 1000); // so small that every store lists the folder
  cache.store(key, contentOf(100, 1));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young));
}

// If another kind of file is in an entry's place, it is not read, and no call blocks.
TEST_F(Caches, ReadNothingButFiles) {
  const std::string entry = folder + "/" + entryOf(key);
  ASSERT_EQ(::mkfifo(entry.c_str(), 0600), 0);
  EXPECT_FALSE(DiskCache(folder, plenty).load(key));
  fs::remove(entry);
  ASSERT_EQ(::mkdir(entry.c_str(), 0700), 0);
  EXPECT_FALSE(DiskCache(folder, plenty).load(key));
}

/// Names that are nearly an entry's or a temporary file's, and those of a build and of an earlier cache.
std::vector<std::string> foreignNames(const std::string &key) {
  return {"main.o",
          "notes.tmp",
          key + ".o",
          key + ".1.0.tmp",
          "kiln-" + key,
          entryOf(key) + ".bak",
          "my-" + entryOf(key),
          entryOf(key.substr(1)),
          entryOf(key + "0"),
          entryOf(std::string(64, 'x')),
          "kiln-" + key + ".tmp",
          "kiln-" + key + ".1.tmp",
          "kiln-" + key + "1.2.tmp",
          "kiln-" + key + ".a.0.tmp",
          "kiln-" + key + ".1..tmp"};
}

// The folder may have other files, old or large: they are unchanged, and do not count for the capacity.
TEST_F(Caches, LeaveFilesThatAreNotTheirsAlone) {
  const std::string stored = digestOf("stored");
  for (const std::string &name : foreignNames(key)) {
    writeText(folder + "/" + name, std::string(20000, 'x'));
    fs::last_write_time(folder + "/" + name, fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  DiskCache cache(folder, 10000);
  for (const char *other : {"a", "b", "c", "d", "e", "f"})
    cache.store(digestOf(other), contentOf(1000, 2));
  cache.store(stored, contentOf(1000, 1));
  for (const std::string &name : foreignNames(key))
    EXPECT_EQ(readText(folder + "/" + name), std::string(20000, 'x')) << name;
  EXPECT_TRUE(cache.load(digestOf("a"))) << "the files of others were counted";
  EXPECT_TRUE(cache.load(stored));
}

// A file that claims to be larger than any entry is not read, not even when its length agrees with its header: it may
// have holes, and be more than memory.
TEST_F(Caches, DropEntriesThatAreTooLarge) {
  constexpr int64_t lengthPlace = 136, header = 144, huge = int64_t(1) << 42;
  DiskCache cache(folder, plenty);
  cache.store(key, contentOf(400, 1));
  const fs::path file = files().at(0);
  fs::resize_file(file, header + huge);
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(lengthPlace).write(reinterpret_cast<const char *>(&huge), sizeof huge);
  stream.close();
  EXPECT_FALSE(cache.load(key));
  EXPECT_TRUE(files().empty());
}

// Entries are executable code: an entry that another user could have written is not used.
TEST_F(Caches, DropEntriesThatOthersMayWriteTo) {
  DiskCache cache(folder, plenty);
  for (const mode_t mode : {0620, 0602, 0666}) {
    cache.store(key, contentOf(400, 1));
    ASSERT_EQ(::chmod(files().at(0).c_str(), mode), 0);
    EXPECT_FALSE(cache.load(key)) << std::oct << mode;
    EXPECT_TRUE(files().empty());
  }
}

TEST_F(Caches, DropEntriesOfOtherUsers) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "only root can give a file away";
  DiskCache cache(folder, plenty);
  cache.store(key, contentOf(400, 1));
  ASSERT_EQ(::chown(files().at(0).c_str(), 12345, 12345), 0);
  EXPECT_FALSE(cache.load(key));
}

// A symbolic link in an entry's place is not followed, whatever its target.
TEST_F(Caches, FollowNoLinks) {
  DiskCache cache(folder, plenty);
  cache.store(key, contentOf(400, 1));
  fs::rename(files().at(0), folder + "/elsewhere");
  fs::create_symlink(folder + "/elsewhere", folder + "/" + entryOf(key));
  EXPECT_FALSE(cache.load(key));
  EXPECT_TRUE(fs::exists(folder + "/elsewhere"));
}

} // namespace

// --- The cache on disk with several processes: some die while they write, some share a folder that is cold -----------

namespace fs = std::filesystem;

namespace {

class CacheProcesses : public Caches {};

// A writer is killed at a random point, 200 times; every entry is then complete or absent.
TEST_F(CacheProcesses, SurviveKillsWhileWriting) {
  const auto contentFor = [](int i) { return contentOf(30000 + i, i); };
  for (int round = 0; round < 200; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      DiskCache cache(folder, plenty);
      for (int i = round;; ++i)
        cache.store(digestOf(std::to_string(i % 50)), contentFor(i % 50));
    }
    ::usleep(500 + round * 97 % 4000);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  DiskCache cache(folder, plenty);
  int there = 0;
  for (const fs::path &file : files())
    there += file.extension() == ".kernel";
  ASSERT_GT(there, 0);
  int whole = 0;
  for (int i = 0; i < 50; ++i)
    if (const auto content = cache.load(digestOf(std::to_string(i)))) {
      ASSERT_EQ(*content, contentFor(i));
      ++whole;
    }
  EXPECT_EQ(whole, there) << "entries that were not whole";
}

// Two processes write one entry repeatedly: a third always reads a complete entry of one of them.
TEST_F(CacheProcesses, WriteOneEntrySideBySide) {
  const auto writer = [&](int64_t bytes, int seed) {
    const pid_t child = ::fork();
    if (child == 0)
      for (DiskCache cache(folder, plenty);;)
        cache.store(key, contentOf(bytes, seed));
    return child;
  };
  DiskCache cache(folder, plenty);
  cache.store(key, contentOf(50000, 1));
  const pid_t first = writer(50000, 1), second = writer(20000, 2);
  for (int i = 0; i < 300; ++i) {
    const auto content = cache.load(key);
    EXPECT_TRUE(content == contentOf(50000, 1) || content == contentOf(20000, 2)) << "read " << i;
  }
  for (const pid_t child : {first, second}) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
}

// --- Through compile() -----------------------------------------------------------------------------------------------

/// Compiles and runs four kernels with KILN_CACHE at `folder` in a child; returns its exit status and output.
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
      launch(*device, test::addKernel, {cdiv(33, std::stoi(block)), 1, 1}, {x.ref(), y.ref()},
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

TEST_F(CacheProcesses, SpareTheSecondProcessTheCompilations) {
  const std::string cache = folder + "/cache", report = folder + "/report";
  const Outcome first = join(compileInChild(cache, report), report);
  EXPECT_EQ(first.status, 0);
  EXPECT_EQ(first.compiled, 4);
  const Outcome second = join(compileInChild(cache, report), report);
  EXPECT_EQ(second.status, 0);
  EXPECT_EQ(second.compiled, 0);
  EXPECT_EQ(second.fromDisk, 4);
}

TEST_F(CacheProcesses, ServeSixteenProcessesAtOnce) {
  const std::string cache = folder + "/cache";
  std::vector<pid_t> children;
  for (int i = 0; i < 16; ++i)
    children.push_back(compileInChild(cache, folder + "/report" + std::to_string(i)));
  for (int i = 0; i < 16; ++i)
    EXPECT_EQ(join(children[i], folder + "/report" + std::to_string(i)).status, 0);
  int entries = 0;
  for (const auto &entry : fs::directory_iterator(cache))
    entries += entry.path().extension() == ".kernel";
  EXPECT_EQ(entries, 4);
}

// A damaged entry is compiled again and replaced.
TEST_F(CacheProcesses, RebuildADamagedEntry) {
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
