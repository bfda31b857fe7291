// Signals that request a run's stop.

#include "models/train/ways_out.h"

#include <functional>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace kiln;

namespace {

/// The exit status of a process that does `action`, or 128 + the signal that ended it.
int statusOf(const std::function<int()> &action) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1, SIGXCPU})
      std::signal(signal, SIG_DFL);
    _exit(action());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Each signal sets the request and ends nothing, any number of times.
TEST(StopSignals, TheyAsk) {
  for (const int signal : {SIGTERM, SIGHUP, SIGPIPE, SIGUSR1, SIGXCPU})
    EXPECT_EQ(statusOf([&] {
                const StopSignals signals;
                const bool before = signals.asked();
                raise(signal);
                raise(signal);
                return !before && signals.asked() ? 0 : 1;
              }),
              0)
        << strsignal(signal);
}

// A second Ctrl-C, or one after another request, ends the program at once.
TEST(StopSignals, ASecondInterruptEndsAtOnce) {
  for (const int first : {SIGINT, SIGTERM})
    EXPECT_EQ(statusOf([&] {
                const StopSignals signals;
                raise(first);
                if (!signals.asked())
                  return 1;
                raise(SIGINT);
                return 0;
              }),
              128 + SIGINT)
        << strsignal(first);
}

TEST(StopSignals, IgnoredOnesStayIgnored) {
  EXPECT_EQ(statusOf([] {
              std::signal(SIGHUP, SIG_IGN);
              std::signal(SIGINT, SIG_IGN);
              const StopSignals signals;
              raise(SIGHUP);
              raise(SIGINT);
              raise(SIGINT);
              return signals.asked() ? 1 : 0;
            }),
            0);
}

// Programs ignore SIGPIPE from their start; during a run it is a request to stop.
TEST(StopSignals, AReaderThatWentAwayAsks) {
  EXPECT_EQ(statusOf([] {
              std::signal(SIGPIPE, SIG_IGN);
              const StopSignals signals;
              raise(SIGPIPE);
              return signals.asked() ? 0 : 1;
            }),
            0);
}

TEST(StopSignals, AfterwardsTheyEndAProgramAgain) {
  EXPECT_EQ(statusOf([] {
              {
                const StopSignals signals;
              }
              raise(SIGTERM);
              return 0;
            }),
            128 + SIGTERM);
}

// A SIGCONT from a rank's parent is a request, because an interrupted mpirun sends one. From other processes it only
// continues a stopped rank.
TEST(StopSignals, RanksNoteTheirParentsSigcont) {
  EXPECT_EQ(statusOf([] {
              const StopSignals signals(true);
              raise(SIGCONT);
              return signals.asked() ? 1 : 0;
            }),
            0);
  const pid_t child = fork();
  if (child == 0) {
    const StopSignals signals(true);
    while (!signals.asked())
      usleep(1000);
    _exit(7);
  }
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    kill(child, SIGCONT);
    usleep(1000);
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

} // namespace
