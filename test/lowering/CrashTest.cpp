// Crashes of the compiler: each becomes an internal error, in the thread that compiles and nowhere else, and signals
// that are not the compiler's own go where they went before.

#include "test/lowering/GoodKernel.h"

#include "lowering/Crashes.h"

#include "gtest/gtest.h"

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

using namespace kiln;
using kiln::test::expectGoodKernelCompiles, kiln::test::objectOf, kiln::test::store42;

/// Compiles, and does `what` in the middle of it, where the compiler's own passes would have crashed.
static void compileAnd(const std::function<void()> &what) {
  objectOf(store42, "cpu", [&](const std::string &stage, const std::string &) {
    if (stage == "loops")
      what();
  });
}

static std::string errorOfCrash(const std::function<void()> &crash) {
  try {
    compileAnd(crash);
  } catch (const Error &error) {
    EXPECT_EQ(error.fault, Fault::internal) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "expected an error";
  return "";
}

/// A folder for reproducers that disappears again.
class Crash : public testing::Test {
protected:
  Crash() { setenv("KILN_DUMP", folder.c_str(), 1); }
  ~Crash() override {
    unsetenv("KILN_DUMP");
    std::filesystem::remove_all(folder);
  }
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("kiln-crash-" + std::to_string(getpid()));
};

// Crashes of the compiler and its libraries. The values are volatile, so that they are not known at compile time.
static int *volatile nowhere = nullptr;
static volatile int zero = 0;
static int depth(volatile char *above) { // until the stack ends
  volatile char frame[256];              // shorter than the page that guards a stack
  frame[0] = above ? above[0] : 0;
  return nowhere ? 0 : depth(frame) + frame[0];
}
static void throwOne() { throw 1; }
static void throwFromNoexcept() noexcept { throwOne(); }

struct Case {
  const char *signal;
  void (*crash)();
};
static const Case cases[] = {
    {"SIGABRT", [] { std::abort(); }},   {"SIGABRT", [] { throwFromNoexcept(); }},
    {"SIGSEGV", [] { *nowhere = 1; }},   {"SIGSEGV", [] { zero = depth(nullptr); }},
    {"SIGFPE", [] { zero = 7 / zero; }}, {"SIGILL", [] { __builtin_trap(); }},
};

TEST_F(Crash, IsAnInternalErrorWithAReproducer) {
  for (const Case &one : cases) {
    const std::string text = errorOfCrash(one.crash);
    EXPECT_NE(text.find("internal error while compiling 'good'"), std::string::npos) << text;
    EXPECT_NE(text.find("the compiler crashed: " + std::string(one.signal)), std::string::npos) << text;
    EXPECT_NE(text.find("run it again with: kiln-opt --run-reproducer " + folder.string()), std::string::npos) << text;
    expectGoodKernelCompiles();
  }
}

// Also on a thread whose stack is not the program's first one.
TEST_F(Crash, OfOneThreadLeavesTheOthersCompiling) {
  std::array<std::thread, 6> threads;
  for (size_t i = 0; i < threads.size(); ++i)
    threads[i] = std::thread([i] {
      for (int round = 0; round < 3; ++round)
        if (i % 2)
          errorOfCrash(cases[(i + round) % std::size(cases)].crash);
        else
          expectGoodKernelCompiles();
    });
  for (std::thread &thread : threads)
    thread.join();
  expectGoodKernelCompiles();
}

// A compilation within another, as a stage's receiver may start one: the inner crash is the inner one's.
TEST_F(Crash, WithinAnotherCompilationEndsTheInnerOne) {
  bool cameBack = false;
  compileAnd([&] {
    errorOfCrash(cases[0].crash);
    cameBack = true;
  });
  EXPECT_TRUE(cameBack);
}

static struct sigaction actionOf(int signal) {
  struct sigaction action = {};
  sigaction(signal, nullptr, &action);
  return action;
}

namespace {
/// A page that cannot be read until the program's own handler of SIGSEGV opens it.
struct ClosedPage {
  ClosedPage() {
    page = static_cast<char *>(mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    struct sigaction action = {};
    action.sa_sigaction = [](int, siginfo_t *info, void *) {
      if (info->si_addr != page)
        _exit(3);
      ++opened;
      mprotect(page, size, PROT_READ | PROT_WRITE);
    };
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &saved);
  }
  ~ClosedPage() {
    sigaction(SIGSEGV, &saved, nullptr);
    munmap(page, size);
  }
  static constexpr size_t size = 4096;
  static inline char *page = nullptr;
  static inline std::atomic<int> opened = 0;
  struct sigaction saved;
};
} // namespace

TEST_F(Crash, HandlersOfTheProgramStandAgainAfterwards) {
  const ClosedPage closed;
  const auto handler = actionOf(SIGSEGV).sa_sigaction, ofAbort = actionOf(SIGABRT).sa_sigaction;
  expectGoodKernelCompiles();
  EXPECT_EQ(actionOf(SIGSEGV).sa_sigaction, handler);
  errorOfCrash(cases[2].crash);
  EXPECT_EQ(actionOf(SIGSEGV).sa_sigaction, handler);
  EXPECT_EQ(actionOf(SIGABRT).sa_sigaction, ofAbort);
  EXPECT_EQ(closed.opened, 0);
}

// A handler that was put in place while something compiled stays.
TEST_F(Crash, HandlersSetMeanwhileStay) {
  std::optional<ClosedPage> closed;
  compileAnd([&] { closed.emplace(); });
  ASSERT_TRUE(closed);
  closed->page[0] = 1;
  EXPECT_EQ(closed->opened, 1);
  closed->saved.sa_flags = 0; // what was in place when it came was the compiler's
  closed->saved.sa_handler = SIG_DFL;
}

TEST_F(Crash, FaultsOfOtherThreadsReachTheProgramsHandler) {
  const ClosedPage closed;
  closed.opened = 0;
  compileAnd([&] { std::thread([&] { closed.page[0] = 7; }).join(); });
  EXPECT_EQ(closed.opened, 1);
  EXPECT_EQ(closed.page[0], 7);
}

TEST(CrashDeathTest, SignalsFromOutsideDoWhatTheyDo) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(compileAnd([] { kill(getpid(), SIGABRT); }), testing::KilledBySignal(SIGABRT), "");
  EXPECT_EXIT(compileAnd([] { std::thread([] { *nowhere = 1; }).join(); }), testing::KilledBySignal(SIGSEGV), "");
}

TEST(CrashDeathTest, WhatDoesNotCompileCrashesAsEver) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT((expectGoodKernelCompiles(), std::abort()), testing::KilledBySignal(SIGABRT), "");
}
