// The cache on disk with several processes: some die while they write, some share a folder that is cold.

#include "runtime/Compile.h"
#include "runtime/Tensor.h"
#include "test/runtime/caches.h"
#include "test/runtime/kernels.h"

#include <csignal>
#include <fstream>
#include <numeric>

using namespace kiln;
using namespace kiln::test;
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
