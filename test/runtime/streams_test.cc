// Standard streams that are closed, full or without a reader: messages may be lost, a lost result is an error, and no
// signal ends the program.

#include "runtime/Streams.h"
#include "test/expect_error.h"
#include "test/temporary_folder.h"

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <new>
#include <sys/stat.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

using namespace kiln;

namespace {

/// The exit status of a process that does `action`, or 128 + the signal that ended it.
int statusOf(const std::function<int()> &action) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGPIPE, SIG_DFL);
    int status = 99;
    try {
      status = action();
    } catch (const std::exception &error) {
      status = exitStatus(error);
    }
    _exit(status);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Makes `stream` a pipe without a reader.
void breakStream(int stream) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  dup2(ends[1], stream);
}

void fillStream(int stream) { dup2(open("/dev/full", O_WRONLY), stream); }

// A message is lost if standard error is closed, full or a pipe without a reader; the program continues, with or
// without openStandardStreams().
TEST(Say, WhatCannotBeWrittenIsLost) {
  EXPECT_EQ(statusOf([] { return close(2), say("text\n"), 0; }), 0);
  EXPECT_EQ(statusOf([] { return fillStream(2), say("text\n"), 0; }), 0);
  EXPECT_EQ(statusOf([] { return breakStream(2), say("text\n"), 0; }), 0);
  EXPECT_EQ(statusOf([] { return openStandardStreams(), breakStream(2), say("text\n"), 0; }), 0);
}

// A broken pipe that is not one of Kiln's messages ends a program as before.
TEST(Say, OtherWritesStillRaise) {
  const auto action = [] {
    breakStream(2);
    say("text\n");
    return write(2, "x", 1) < 0 ? 0 : 1;
  };
  EXPECT_EQ(statusOf(action), 128 + SIGPIPE);
}

TEST(Say, WritesAllOfALongMessage) {
  const TemporaryFolder folder;
  const std::string text(1 << 20, 'x');
  EXPECT_EQ(statusOf([&] {
              dup2(open((folder / "f").c_str(), O_WRONLY | O_CREAT, 0600), 2);
              return say(text), 0;
            }),
            0);
  EXPECT_EQ(readText(folder / "f"), text);
}

// A reader that is slow, on a pipe that does not wait, gets all of a message.
TEST(Say, WaitsForAPipeThatDoesNot) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  const std::string text(1 << 20, 'x');
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 2);
    say(text);
    _exit(0);
  }
  close(ends[1]);
  fcntl(ends[0], F_SETFL, 0);
  size_t got = 0;
  std::string buffer(4096, ' ');
  for (ssize_t size; (size = read(ends[0], buffer.data(), buffer.size())) > 0;)
    got += static_cast<size_t>(size);
  close(ends[0]);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(got, text.size());
}

// Output of kernels is lost in these cases, too, and a signal never ends the program.
TEST(Show, WhatCannotBeWrittenIsLost) {
  const std::string text(1 << 20, 'x'); // beyond any buffer
  EXPECT_EQ(statusOf([&] { return breakStream(1), show(text), 0; }), 0);
  EXPECT_EQ(statusOf([&] { return fillStream(1), show(text), 0; }), 0);
}

// A result that could not be written is the machine's fault, whether the stream is closed, full or without a reader.
TEST(WriteResult, WhatCannotBeWrittenIsAnError) {
  EXPECT_EQ(statusOf([] { return writeResult(""), 0; }), 0);
  EXPECT_EQ(statusOf([] { return close(1), writeResult("text\n"), 0; }), 3);
  EXPECT_EQ(statusOf([] { return close(1), openStandardStreams(), writeResult("text\n"), 0; }), 3);
  EXPECT_EQ(statusOf([] { return fillStream(1), writeResult("text\n"), 0; }), 3);
  EXPECT_EQ(statusOf([] { return breakStream(1), writeResult("text\n"), 0; }), 3);
}

// Text in stdio's buffer is written first, and its loss is an error too.
TEST(WriteResult, AnswersForWhatStdioHolds) {
  const TemporaryFolder folder;
  EXPECT_EQ(statusOf([&] {
              dup2(open((folder / "f").c_str(), O_WRONLY | O_CREAT, 0600), 1);
              show("one ");
              return writeResult("two"), 0;
            }),
            0);
  EXPECT_EQ(readText(folder / "f"), "one two");
  EXPECT_EQ(statusOf([] { return fillStream(1), show("lost"), writeResult(""), 0; }), 3);
}

// A file opened after openStandardStreams() has no standard stream's number, whichever of them were closed.
TEST(OpenStandardStreams, NoFileTakesTheirNumbers) {
  for (int closed = 0; closed < 8; ++closed)
    EXPECT_EQ(statusOf([&] {
                for (int stream = 0; stream < 3; ++stream)
                  if (closed & 1 << stream)
                    close(stream);
                openStandardStreams();
                return open("/dev/null", O_RDONLY) > 2 ? 0 : 1;
              }),
              0)
        << closed;
}

// An open stream is unchanged.
TEST(OpenStandardStreams, OpenOnesStay) {
  EXPECT_EQ(statusOf([] {
              struct stat before[3], after[3];
              close(0);
              for (int stream = 1; stream < 3; ++stream)
                fstat(stream, &before[stream]);
              openStandardStreams();
              for (int stream = 1; stream < 3; ++stream)
                if (fstat(stream, &after[stream]) != 0 || before[stream].st_ino != after[stream].st_ino)
                  return 1;
              return 0;
            }),
            0);
}

TEST(ExitStatus, SaysWhoseFaultItIs) {
  EXPECT_EQ(exitStatus(Error("x")), 2);
  EXPECT_EQ(exitStatus(Error("x", Fault::device)), 3);
  EXPECT_EQ(exitStatus(Error("x", Fault::internal)), 4);
  EXPECT_EQ(exitStatus(std::bad_alloc()), 3);
  EXPECT_EQ(exitStatus(std::system_error(EAGAIN, std::generic_category())), 3);
  EXPECT_EQ(exitStatus(std::filesystem::filesystem_error("x", std::error_code())), 3);
  EXPECT_EQ(exitStatus(std::logic_error("x")), 4);
}

/// The text that report() prints for `error`.
std::string reported(const std::exception &error) {
  const TemporaryFolder folder;
  statusOf([&] {
    dup2(open((folder / "f").c_str(), O_WRONLY | O_CREAT, 0600), 2);
    return report("prog", error);
  });
  return readText(folder / "f");
}

TEST(Report, NamesTheProgramUnlessTheErrorHasAPlace) {
  EXPECT_EQ(reported(Error("expected a, but got b\n")), "prog: error: expected a, but got b\n");
  EXPECT_EQ(reported(Error("f.cc:3: error: expected a, but got b")), "f.cc:3: error: expected a, but got b\n");
  EXPECT_EQ(reported(std::logic_error("x")), "prog: internal error: x\n");
  EXPECT_EQ(reported(std::bad_alloc()), "prog: error: out of host memory\n");
}

} // namespace
