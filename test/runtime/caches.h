// Shared by the tests of the disk cache: a folder, contents, and child processes.

#pragma once

#include "runtime/Cache.h"
#include "test/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::test {

inline constexpr int64_t plenty = int64_t(1) << 30;

inline std::vector<char> contentOf(int64_t bytes, int seed) {
  std::vector<char> content(bytes);
  for (int64_t i = 0; i < bytes; ++i)
    content[i] = static_cast<char>(i * 31 + seed);
  return content;
}

/// The name of the file with the entry of `key`.
inline std::string entryOf(const std::string &key) { return "kiln-" + key + ".kernel"; }

class Caches : public testing::Test {
protected:
  void TearDown() override { ::chmod(folder.c_str(), 0700); }
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> found;
    for (const auto &entry : std::filesystem::directory_iterator(folder))
      found.push_back(entry.path());
    return found;
  }
  const TemporaryFolder temporary;
  const std::string folder = temporary.path;
  const std::string key = digestOf("key");
};

/// The standard error of `action`, and the signal that ended it, if any. It runs in a child, because a process reports
/// a fault of the cache's folder once.
inline std::string saidBy(const std::function<void()> &action) {
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

} // namespace kiln::test
