// Ranks as processes: each is a fork of the test, with its own devices. They exchange data through shared memory.

#pragma once

#include "dialect/dsl/Types.h"
#include "models/parallel/collective.h"

#include <atomic>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace kiln::test {

class ProcessRanks : public Collective {
public:
  /// Runs `each` on so many ranks, and returns the exit statuses: 0, or 1 if an expectation failed or `each` threw,
  /// with a message on standard error. A rank that waits for one that has ended would wait for ever: status 9 after
  /// `seconds`.
  static std::vector<int> run(int size, const std::function<void(Collective &)> &each, unsigned seconds = 120) {
    void *const memory =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      throw std::runtime_error("no memory to share");
    auto *const shared = new (memory) Shared;
    std::vector<pid_t> processes;
    for (int r = 0; r < size; ++r) {
      const pid_t process = ::fork();
      if (process == 0) {
        ::alarm(seconds);
        const int status = ended(shared, r, size, each);
        std::fflush(nullptr);
        ::_exit(status);
      }
      processes.push_back(process);
    }
    std::vector<int> statuses;
    for (const pid_t process : processes) {
      int status = 0;
      ::waitpid(process, &status, 0);
      statuses.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
    ::munmap(memory, sizeof(Shared));
    return statuses;
  }

  int rank() const override { return number; }
  int size() const override { return ranks; }
  int localRank() const override { return number; }
  int localSize() const override { return ranks; }
  using Collective::broadcast;
  void exchange(const void *from, void *to, int64_t bytes) override {
    put(from, bytes * ranks);
    for (int r = 0; r < ranks; ++r)
      std::memcpy(static_cast<char *>(to) + r * bytes, shared->data[r] + number * bytes, bytes);
    meet();
  }
  void gather(void *all, int64_t bytes) override {
    put(static_cast<char *>(all) + number * bytes, bytes);
    for (int r = 0; r < ranks; ++r)
      std::memcpy(static_cast<char *>(all) + r * bytes, shared->data[r], bytes);
    meet();
  }
  void broadcast(void *data, int64_t bytes) override {
    put(data, bytes);
    std::memcpy(data, shared->data[0], bytes);
    meet();
  }

private:
  static constexpr int most = 4;
  static constexpr int64_t mostBytes = 64 << 20;
  struct Shared {
    std::atomic<int64_t> arrived = 0; // at meetings so far, of all ranks
    char data[most][mostBytes];
  };

  ProcessRanks(Shared *shared, int number, int ranks) : shared(shared), number(number), ranks(ranks) {}

  static int ended(Shared *shared, int rank, int size, const std::function<void(Collective &)> &each) {
    try {
      ProcessRanks mine(shared, rank, size);
      each(mine);
    } catch (const std::exception &error) {
      std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
      return 1;
    }
    return testing::Test::HasFailure() ? 1 : 0;
  }
  void put(const void *from, int64_t bytes) {
    if (bytes > mostBytes)
      throw Error("more than ranks share", Fault::internal);
    std::memcpy(shared->data[number], from, bytes);
    meet();
  }
  /// Waits until all ranks have called this as often as this one.
  void meet() {
    const int64_t wanted = ++meetings * ranks;
    for (++shared->arrived; shared->arrived < wanted;)
      ::sched_yield();
  }

  Shared *const shared;
  const int number, ranks;
  int64_t meetings = 0;
};

} // namespace kiln::test
