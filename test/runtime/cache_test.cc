// The entries of the disk cache: stored ones are read back, damaged or foreign ones never.

#include "test/runtime/caches.h"

#include <algorithm>
#include <fstream>

#include <dirent.h>
#include <dlfcn.h>

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
