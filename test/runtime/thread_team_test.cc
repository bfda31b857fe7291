// The threads of launches: all work is done, no thread is left running, and calls from any thread are served.

#include "runtime/cpu/ThreadTeam.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <pthread.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace kiln;

namespace {

/// Takes the numbers below `count` in turn, as a launch takes its programs; whether each was taken once.
bool takesEachOnce(int threads, int count) {
  std::vector<std::atomic<int>> taken(count);
  std::atomic<int> next = 0;
  ThreadTeam::ofProcess().run(threads, [&] {
    for (int i; (i = next.fetch_add(1)) < count;)
      ++taken[i];
  });
  return std::all_of(taken.begin(), taken.end(), [](const std::atomic<int> &times) { return times == 1; });
}

/// The number of threads, except the calling one, that take part in a call of sufficient length.
int foreignThreads(int threads) {
  const std::thread::id own = std::this_thread::get_id();
  std::atomic<int> foreign = 0;
  ThreadTeam::ofProcess().run(threads, [&] {
    foreign += std::this_thread::get_id() != own;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  return foreign;
}

/// Whether a second thread takes part in a call within ten seconds.
bool twoMeet() {
  const auto latest = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  std::atomic<int> present = 0;
  ThreadTeam::ofProcess().run(2, [&] {
    ++present;
    while (present < 2 && std::chrono::steady_clock::now() < latest)
      std::this_thread::yield();
  });
  return present == 2;
}

TEST(ThreadTeam, DoesAllWorkOnceAtAnyNumberOfThreads) {
  for (const int threads : {1, 2, 5, 16, 3})
    EXPECT_TRUE(takesEachOnce(threads, 1000)) << threads << " threads";
}

// Short calls in a row: some threads take part, others are cancelled. Every thread that began has ended when run()
// returns, and none takes part twice.
TEST(ThreadTeam, WaitsForThoseThatBegan) {
  static constexpr int threads = 4;
  for (int call = 0; call < 20000; ++call) {
    std::atomic<int> begun = 0, ended = 0;
    ThreadTeam::ofProcess().run(threads, [&] {
      ++begun;
      ++ended;
    });
    const int began = begun;
    ASSERT_EQ(ended, began);
    ASSERT_GE(began, 1);
    ASSERT_LE(began, threads);
  }
}

// Sleeping threads are woken: if two wait for each other, both take part. The caller waits long enough for the second
// to sleep, too, and the wait does not end before it.
TEST(ThreadTeam, WakesThreadsThatSleep) {
  for (int call = 0; call < 5; ++call) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int> present = 0, ended = 0;
    ThreadTeam::ofProcess().run(2, [&] {
      const bool first = present.fetch_add(1) == 0;
      while (present < 2)
        std::this_thread::yield();
      if (!first)
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      ++ended;
    });
    EXPECT_EQ(ended, 2);
  }
}

// A call that finds the team at work does all by itself, although other threads of the team are free.
TEST(ThreadTeam, ServesCallsFromWithinACall) {
  std::atomic<int> done = 0, foreign = 0;
  ThreadTeam::ofProcess().run(2, [&] {
    foreign += foreignThreads(4);
    ++done;
  });
  EXPECT_GE(done, 1);
  EXPECT_EQ(foreign, 0);
}

TEST(ThreadTeam, ServesCallsOfOtherThreadsMeanwhile) {
  ASSERT_TRUE(takesEachOnce(4, 100));
  int foreign = -1;
  std::atomic<bool> first = true;
  ThreadTeam::ofProcess().run(2, [&] {
    if (first.exchange(false))
      std::thread([&] { foreign = foreignThreads(4); }).join();
  });
  EXPECT_EQ(foreign, 0);
}

// A system that gives no more threads: stacks of 64 TiB are not to be had.
TEST(ThreadTeam, DoesWithTheThreadsThereAre) {
  pthread_attr_t normal, huge;
  ASSERT_EQ(::pthread_getattr_default_np(&normal), 0);
  ASSERT_EQ(::pthread_getattr_default_np(&huge), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&huge, size_t{1} << 46), 0);
  ASSERT_EQ(::pthread_setattr_default_np(&huge), 0);
  EXPECT_THROW(std::thread([] {}).join(), std::system_error);
  EXPECT_TRUE(takesEachOnce(40, 1000));
  ASSERT_EQ(::pthread_setattr_default_np(&normal), 0);
  EXPECT_TRUE(takesEachOnce(40, 1000));
}

TEST(ThreadTeam, ServesSeveralThreadsAtOnce) {
  std::atomic<int> failures = 0;
  std::vector<std::jthread> callers;
  for (int i = 0; i < 4; ++i)
    callers.emplace_back([&] {
      for (int call = 0; call < 200; ++call)
        failures += !takesEachOnce(3, 20);
    });
  callers.clear();
  EXPECT_EQ(failures, 0);
}

// A child process does not have its parent's threads, so it starts others. The parent's threads have started before it
// forks: the address sanitizer holds a lock while a thread starts, and in a child it would never be released.
TEST(ThreadTeam, WorksInAForkedChild) {
  ASSERT_TRUE(twoMeet());
  const pid_t child = ::fork();
  if (child == 0)
    ::_exit(twoMeet() ? 0 : 1);
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

} // namespace
