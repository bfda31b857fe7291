// Runs a program as a user does, and returns its exit status and output; runs gpt2 on a text and a model so small that
// a run takes a second or two.

#pragma once

#include "test/devices.h"
#include "test/paths.h"
#include "test/temporary_folder.h"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

/// Starts `words`, with stdout and stderr going to the file `output`.
inline pid_t start(std::vector<std::string> words, const std::string &output) {
  const pid_t child = fork();
  if (child != 0)
    return child;
  const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  std::vector<char *> argv;
  for (std::string &word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  _exit(127);
}

/// Waits for it; the exit status, or 128 + the signal that ended it.
inline int finish(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// The exit status and the output of a program that ended.
struct Result {
  int status;
  std::string output;
};

/// Expects an exit status, and these texts in the output.
inline void expectResult(const Result &result, int status, std::initializer_list<std::string> parts = {}) {
  EXPECT_EQ(result.status, status) << result.output;
  for (const std::string &part : parts)
    EXPECT_NE(result.output.find(part), std::string::npos) << part << " in\n" << result.output;
}
/// A mistake of the user.
inline void expectMistake(const Result &result, const std::string &message) { expectResult(result, 2, {message}); }

/// Expects two checkpoints, or runs, to have files of equal bytes.
inline void expectSameFiles(const std::string &a, const std::string &b,
                            const std::vector<std::string> &files = {"config.json", "model.safetensors",
                                                                     "optimizer.safetensors", "training.json"}) {
  for (const std::string &file : files) {
    EXPECT_GT(readText(a + "/" + file).size(), 100u);
    EXPECT_TRUE(readText(a + "/" + file) == readText(b + "/" + file)) << a << " and " << b << " differ in " << file;
  }
}

inline std::vector<std::string> joined(std::vector<std::string> words, const std::vector<std::string> &more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// A folder with a text to train on, and runs of gpt2 in it.
class ProgramTest : public testing::Test {
protected:
  using Json = nlohmann::json;

  ProgramTest() {
    std::string text;
    for (int i = 0; i < 400; ++i)
      text += "line " + std::to_string(i * 7919 % 1000) + " of the text\n";
    writeText(data, text);
  }
  /// Runs a program with these words.
  Result run(const std::string &program, const std::vector<std::string> &words) const {
    const int status = finish(start(joined({kiln::test::programPath(program)}, words), folder / "output"));
    return {status, readText(folder / "output")};
  }
  Result gpt2(const std::vector<std::string> &words) const { return run(KILN_PROGRAM, words); }
  std::vector<std::string> trainWords(const std::string &out, const std::vector<std::string> &more) const {
    std::istringstream sizes("--layers 1 --heads 2 --width 16 --context 8 --batch 4 --device " +
                             kiln::test::firstDevice());
    const std::vector<std::string> words(std::istream_iterator<std::string>(sizes), {});
    return joined(joined({"train", "--data", data, "--out", out}, words), more);
  }
  Result train(const std::string &out, const std::vector<std::string> &more) const {
    return gpt2(trainWords(out, more));
  }
  /// Continues the run in `out` with its own settings.
  Result resume(const std::string &program = KILN_PROGRAM) const {
    return run(program, {"train", "--data", data, "--out", out, "--resume", "--device", kiln::test::firstDevice()});
  }
  /// Starts a run that never ends by itself, with `more` flags.
  pid_t startEndless(const std::vector<std::string> &more = {}) {
    std::filesystem::remove_all(out);
    const std::vector<std::string> words = joined(trainWords(out, {"--steps", "1000000", "--overwrite"}), more);
    return start(joined({kiln::test::programPath(KILN_PROGRAM)}, words), folder / "output");
  }
  /// Waits until `holds()`, at most a minute; returns whether it became true.
  template <class Condition> static bool waitUntil(Condition holds) {
    for (int i = 0; i < 6000 && !holds(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return holds();
  }
  bool waitForRows() {
    return waitUntil(
        [&] { return std::filesystem::exists(out + "/log.jsonl") && !readText(out + "/log.jsonl").empty(); });
  }
  /// Runs twenty steps by `trains(folder, flags)`. On the CPU and in the simulator in f32, losses are equal except for
  /// the order of sums; in the simulator in bf16, the loss decreases.
  template <class Trains> void expectLossesInTheSimulator(Trains trains) {
    const std::vector<std::string> steps = {"--steps", "20", "--lr", "0.01"};
    const auto losses = [&](const std::string &name, const std::string &device, const std::string &dtype) {
      const Result result = trains(folder / name, joined(steps, {"--device", device, "--dtype", dtype}));
      EXPECT_EQ(result.status, 0) << result.output;
      std::vector<double> all;
      for (const Json &row : rows(folder / name))
        all.push_back(row.at("loss"));
      EXPECT_EQ(all.size(), 20u);
      return all;
    };
    const std::vector<double> want = losses("cpu", "cpu", "fp32"), got = losses("fp32", "simulator:sm_80", "fp32"),
                              narrow = losses("bf16", "simulator:sm_80", "bf16");
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(got[i], want[i], 2e-5) << i;
    EXPECT_LT(narrow.back(), narrow.front());
  }
  static std::vector<Json> rows(const std::string &out) {
    std::istringstream lines(readText(out + "/log.jsonl"));
    std::vector<Json> all;
    for (std::string line; std::getline(lines, line) && !lines.eof();) // the last line may be in the making
      all.push_back(Json::parse(line));
    return all;
  }

  const TemporaryFolder folder;
  const std::string data = folder / "text", out = folder / "run";
};
