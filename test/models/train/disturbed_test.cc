// Runs of gpt2 with disturbances: signals, a second trainer, a full disk, a removed folder and closed streams.
// Completed steps are saved, and the exit status names the cause.

#include "models/gpt2/config.h"
#include "models/gpt2/network.h"
#include "models/gpt2/pretrained.h"
#include "models/train/checkpoint.h"
#include "test/models/file_size_limit.h"
#include "test/models/gpt2/program.h"
#include "test/paths.h"

#include <cmath>
#include <cstring>
#include <linux/fs.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace {

class Disturbed : public ProgramTest {
protected:
  int64_t newestStep() const {
    const auto checkpoint = kiln::newestCheckpoint(out);
    return checkpoint ? kiln::readRunState(*checkpoint).step : -1;
  }
  std::string output() const { return readText(folder / "output"); }
  void expectOutput(const std::string &part) const {
    EXPECT_NE(output().find(part), std::string::npos) << part << " in\n" << output();
  }
};

// --- Signals ---------------------------------------------------------------------------------------------------------

// An interrupt, a termination request, a lost terminal and a closed pipe end the run after its step with a checkpoint
// of that step and status 0.
TEST_F(Disturbed, SignalsSaveAndExit) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    std::signal(SIGHUP, SIG_DFL); // these tests may run under nohup
    const pid_t child = startEndless();
    ASSERT_TRUE(waitForRows());
    kill(child, signal);
    EXPECT_EQ(finish(child), 0) << strsignal(signal) << "\n" << readText(folder / "output");
    const auto checkpoint = kiln::newestCheckpoint(out);
    ASSERT_TRUE(checkpoint.has_value()) << strsignal(signal);
    EXPECT_EQ(kiln::readRunState(*checkpoint).step, rows(out).back().at("step").get<int64_t>());
  }
}

// Under nohup a run outlives its terminal.
TEST_F(Disturbed, AnIgnoredHangupStaysIgnored) {
  std::signal(SIGHUP, SIG_IGN);
  const pid_t child = startEndless();
  ASSERT_TRUE(waitForRows());
  std::signal(SIGHUP, SIG_DFL);
  kill(child, SIGHUP);
  const size_t before = rows(out).size();
  EXPECT_TRUE(waitUntil([&] { return rows(out).size() >= before + 50; }));
  EXPECT_EQ(waitpid(child, nullptr, WNOHANG), 0);
  kill(child, SIGTERM);
  EXPECT_EQ(finish(child), 0);
}

// A write beyond the limit on a file's size is reported like a full disk, and the old checkpoint stays.
TEST_F(Disturbed, AFileSizeLimitLeavesTheOldCheckpoint) {
  ASSERT_EQ(train(out, {"--steps", "4", "--stop-after", "2"}).status, 0);
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limit = {10000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  const Result r = resume();
  setrlimit(RLIMIT_FSIZE, &before);
  expectResult(r, 3, {"File too large (earlier checkpoints are untouched)"});
  const auto checkpoint = kiln::newestCheckpoint(out);
  ASSERT_TRUE(checkpoint.has_value());
  EXPECT_EQ(kiln::readRunState(*checkpoint).step, 2);
}

// A failed periodic save is reported, and the run continues: its last save decides the exit status.
TEST_F(Disturbed, AFailingSaveOnTheWayIsTold) {
  const FileSizeLimit limit(10000);
  const Result r = train(out, {"--steps", "6", "--save-every", "2"});
  EXPECT_EQ(r.status, 3) << r.output;
  for (const char *step : {"step 2", "step 4"})
    EXPECT_NE(r.output.find(std::string("warning: could not save ") + step + ": "), std::string::npos) << r.output;
  EXPECT_EQ(rows(out).size(), 6u);
  EXPECT_EQ(newestStep(), -1);
}

// A loss that is no number ends the run, with the weights before it saved, and they are numbers.
TEST_F(Disturbed, ADivergedRunKeepsItsLastGoodWeights) {
  const Result r = train(out, {"--steps", "400", "--warmup", "0", "--lr", "1e30", "--clip", "1e30"});
  expectResult(
      r, 2,
      {"expected a finite loss and gradient at step", "is saved in '" + out + "', and --resume continues from it"});
  EXPECT_EQ(newestStep(), static_cast<int64_t>(rows(out).size()));
  const std::string path = *kiln::newestCheckpoint(out);
  const kiln::Network network(kiln::readConfig(path));
  const std::vector<char> bytes = kiln::readWeights(path + "/model.safetensors", network.parameters(), kiln::f32);
  std::vector<float> weights(bytes.size() / 4);
  std::memcpy(weights.data(), bytes.data(), bytes.size());
  for (const float weight : weights)
    ASSERT_TRUE(std::isfinite(weight));
}

// A step of many micro-batches can end between two of them. Its partial gradient is dropped, so resuming is exact.
TEST_F(Disturbed, AnInterruptEndsALongStep) {
  ASSERT_EQ(train(out, {"--steps", "4", "--stop-after", "2"}).status, 0);
  std::vector<std::string> words = {kiln::test::programPath(KILN_PROGRAM),
                                    "train",
                                    "--data",
                                    data,
                                    "--out",
                                    out,
                                    "--resume",
                                    "--device",
                                    kiln::test::firstDevice(),
                                    "--accumulate",
                                    "1000000"};
  const pid_t child = start(words, folder / "second");
  ASSERT_TRUE(waitUntil([&] { return readText(folder / "second").find("resuming from") != std::string::npos; }));
  kill(child, SIGINT);
  EXPECT_EQ(finish(child), 0);
  EXPECT_NE(readText(folder / "second").find("stopped after step 2"), std::string::npos) << readText(folder / "second");
  EXPECT_EQ(newestStep(), 2);
}

// Before the first step there is nothing to save, so an interrupt ends the program at once: while it waits for a pipe
// to be opened or for more text.
TEST_F(Disturbed, AnInterruptEndsWaitingForAPipe) {
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  const pid_t child = start({kiln::test::programPath(KILN_PROGRAM), "train", "--data", folder / "pipe", "--out", out},
                            folder / "output");
  int pipe = -1; // opens when the other side has
  ASSERT_TRUE(waitUntil([&] { return (pipe = open((folder / "pipe").c_str(), O_WRONLY | O_NONBLOCK)) >= 0; }));
  kill(child, SIGINT);
  EXPECT_EQ(finish(child), 128 + SIGINT);
  close(pipe);
  EXPECT_EQ(train(out, {"--steps", "1"}).status, 0); // what it left is not in the way
}

// --- Another trainer -------------------------------------------------------------------------------------------------

// A folder has one trainer; a second has an error that names the first one's process, and changes nothing. Sampling is
// always possible, while checkpoints are added and removed.
TEST_F(Disturbed, ASecondTrainerIsRefused) {
  const pid_t child = startEndless({"--save-every", "1"});
  ASSERT_TRUE(waitUntil([&] { return kiln::newestCheckpoint(out).has_value(); }));
  for (const char *flag : {"--overwrite", "--resume"}) {
    std::vector<std::string> words = trainWords(out, {flag});
    words.insert(words.begin(), kiln::test::programPath(KILN_PROGRAM));
    EXPECT_EQ(finish(start(words, folder / "second")), 2);
    const std::string said = readText(folder / "second");
    EXPECT_NE(said.find("but process " + std::to_string(child)), std::string::npos) << said;
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(finish(start({kiln::test::programPath(KILN_PROGRAM), "sample", "--out", out, "--tokens", "1"},
                           folder / "sample")),
              0)
        << readText(folder / "sample");
  }
  kill(child, SIGTERM);
  EXPECT_EQ(finish(child), 0);
  const std::vector<Json> log = rows(out);
  for (size_t i = 0; i < log.size(); ++i)
    ASSERT_EQ(log[i].at("step"), i + 1);
}

// --- The folder ------------------------------------------------------------------------------------------------------

// If the log cannot grow, the run ends, and its steps are saved first. (A limit on the size of files replaces a full
// disk: the log exceeds it before the checkpoint does.)
TEST_F(Disturbed, AFullLogSavesFirst) {
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limit = {100000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  const Result r = train(out, {"--steps", "100000"});
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(r.status, 3) << r.output;
  EXPECT_NE(r.output.find("log.jsonl': File too large; step"), std::string::npos) << r.output;
  EXPECT_NE(r.output.find("is saved"), std::string::npos) << r.output;
  EXPECT_EQ(newestStep(), static_cast<int64_t>(rows(out).size()) + 1);
}

// The row that did not fit the log is in it after resuming.
TEST_F(Disturbed, ARowThatCouldNotBeWrittenIsWrittenLater) {
  {
    const FileSizeLimit limit(100000);
    ASSERT_EQ(train(out, {"--steps", "100000", "--evaluate-every", "0"}).status, 3);
  }
  const int64_t step = newestStep();
  const Result r = gpt2({"train", "--data", data, "--out", out, "--resume", "--stop-after", std::to_string(step + 1),
                         "--device", kiln::test::firstDevice()});
  ASSERT_EQ(r.status, 0) << r.output;
  const std::vector<Json> log = rows(out);
  ASSERT_EQ(std::ssize(log), step + 1);
  for (int64_t i = 0; i < std::ssize(log); ++i)
    ASSERT_EQ(log[i].at("step"), i + 1);
  EXPECT_TRUE(std::isfinite(log[step - 1].at("loss").get<double>()));
  EXPECT_FALSE(std::filesystem::exists(out + "/log.jsonl.rest"));
}

// A run whose folder is renamed creates it again, saves there, and reports it.
TEST_F(Disturbed, AFolderThatGoesAwayIsTold) {
  const pid_t child = startEndless();
  ASSERT_TRUE(waitForRows());
  std::filesystem::rename(out, folder / "elsewhere");
  EXPECT_EQ(finish(child), 3);
  expectOutput("expected '" + out + "' to stay in place while a run writes to it, but it was removed or renamed; step");
  expectOutput("is saved");
  EXPECT_GT(newestStep(), 0);
  EXPECT_GE(static_cast<int64_t>(rows(folder / "elsewhere").size()) + 1, newestStep());
}

// So does a run whose log is removed.
TEST_F(Disturbed, ALogThatGoesAwayIsTold) {
  const pid_t child = startEndless();
  ASSERT_TRUE(waitForRows());
  std::filesystem::remove(out + "/log.jsonl");
  EXPECT_EQ(finish(child), 3);
  expectOutput("log.jsonl' to stay in place");
  EXPECT_GT(newestStep(), 0);
}

// If another run's folder took its place, nothing is written to that.
TEST_F(Disturbed, AnotherRunsFolderIsLeftAlone) {
  ASSERT_EQ(train(folder / "other", {"--steps", "1"}).status, 0);
  const pid_t child = startEndless();
  ASSERT_TRUE(waitForRows());
  ASSERT_EQ(renameat2(AT_FDCWD, out.c_str(), AT_FDCWD, (folder / "other").c_str(), RENAME_EXCHANGE), 0);
  EXPECT_EQ(finish(child), 3);
  expectOutput("are lost: another run's '" + out + "/checkpoint-00000001' is there now");
  EXPECT_EQ(newestStep(), 1);
  EXPECT_EQ(rows(out).size(), 1u);
}

// --- Damage ----------------------------------------------------------------------------------------------------------

// A damaged newest checkpoint is neither used nor skipped: the error names the previous one and how to resume from it,
// which then replaces later ones.
TEST_F(Disturbed, ADamagedCheckpointNamesTheOneBefore) {
  ASSERT_EQ(train(out, {"--steps", "6", "--save-every", "2", "--stop-after", "4"}).status, 0);
  const std::string newest = out + "/checkpoint-00000004";
  std::string bytes = readText(newest + "/model.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  writeText(newest + "/model.safetensors", bytes);
  expectMistake(resume(), "the file is damaged; '" + out + "/checkpoint-00000002' is intact, and --resume-step 2");
  expectMistake(gpt2({"sample", "--out", out, "--tokens", "1"}), "/checkpoint-00000002' is intact");
  expectResult(train(out, {"--resume-step", "2", "--stop-after", "3"}), 0);
  EXPECT_EQ(newestStep(), 3);
  EXPECT_EQ(rows(out).size(), 3u);
  expectMistake(train(out, {"--resume-step", "5"}), "expected a checkpoint of step 5");
}

// A model that its config.json no longer describes as it was trained makes no text, and nothing begins with it.
TEST_F(Disturbed, AChangedConfigIsRefused) {
  ASSERT_EQ(train(out, {"--steps", "1"}).status, 0);
  const std::string path = out + "/checkpoint-00000001/config.json";
  std::string config = readText(path);
  config.replace(config.find("1e-05"), 5, "1e-01");
  writeText(path, config);
  EXPECT_EQ(gpt2({"sample", "--out", out, "--tokens", "1"}).status, 2);
  expectOutput("as when they were written");
  EXPECT_EQ(train(folder / "other", {"--steps", "1", "--init", out}).status, 2);
  expectOutput("as when they were written");
}

// A run whose folder was copied with links followed can be resumed, or started again.
TEST_F(Disturbed, ACopiedRunGoesOn) {
  ASSERT_EQ(train(out, {"--steps", "4", "--stop-after", "2"}).status, 0);
  const std::string copy = folder / "copy", again = folder / "again";
  for (const std::string &to : {copy, again})
    ASSERT_EQ(finish(start({"/bin/cp", "-rL", out, to}, folder / "output")), 0);
  EXPECT_EQ(gpt2({"train", "--data", data, "--out", copy, "--resume", "--device", kiln::test::firstDevice()}).status, 0)
      << output();
  EXPECT_EQ(readText(copy + "/model.safetensors"), readText(copy + "/checkpoint-00000004/model.safetensors"));
  EXPECT_EQ(train(again, {"--steps", "1", "--overwrite"}).status, 0) << output();
  EXPECT_EQ(readText(again + "/latest/model.safetensors"), readText(again + "/checkpoint-00000001/model.safetensors"));
}

// Weights that are not finite make no text.
TEST_F(Disturbed, WeightsThatAreNotNumbersAreRefused) {
  ASSERT_EQ(train(out, {"--steps", "1"}).status, 0);
  const std::string path = out + "/checkpoint-00000001";
  const kiln::Network network(kiln::readConfig(path));
  std::vector<char> weights = kiln::readWeights(path + "/model.safetensors", network.parameters(), kiln::f32);
  std::vector<kiln::HostTensor> tensors;
  for (const kiln::Parameter &p : network.parameters().all())
    tensors.push_back({p.name, kiln::f32, p.shape, weights.data() + p.offset * 4});
  const float bad = NAN;
  std::memcpy(weights.data() + network.parameters().all().back().offset * 4, &bad, 4);
  kiln::writeSafetensors(path + "/model.safetensors", tensors);
  std::filesystem::remove(path + "/training.json"); // of which the file is no part any more
  EXPECT_EQ(gpt2({"sample", "--out", out}).status, 2);
  expectOutput("expected finite weights in '" + path + "', but tensor '");
}

// --- Memory ----------------------------------------------------------------------------------------------------------

// With a limited address space and many threads, a run compiles with fewer threads, or reports that there is no memory.
TEST_F(Disturbed, FewAddressesAreNoCrash) {
  for (const char *limit : {"400000", "550000", "700000", "1000000", "2500000"}) {
    const std::string cache = folder / ("cache-" + std::string(limit)); // where nothing is compiled yet
    std::vector<std::string> words = trainWords(out, {"--steps", "2", "--overwrite", "--threads", "16"});
    words.insert(words.begin(),
                 {"/bin/sh", "-c", R"(ulimit -v "$0"; KILN_CACHE="$1"; export KILN_CACHE; shift; exec "$@")", limit,
                  cache, kiln::test::programPath(KILN_PROGRAM)});
    const int status = finish(start(words, folder / "output"));
    EXPECT_TRUE(status == 0 || status == 3) << limit << ": " << status << "\n" << output();
  }
}

// --- Streams ---------------------------------------------------------------------------------------------------------

// If the streams for progress are closed, no progress line is written to a file of the run.
TEST_F(Disturbed, ClosedStreamsAreNoFiles) {
  for (const char *closed : {"<&-", ">&-", "2>&-", "<&- >&- 2>&-", "> /dev/full 2> /dev/full"}) {
    std::vector<std::string> words = trainWords(out, {"--steps", "3", "--overwrite"});
    words.insert(words.begin(),
                 {"/bin/sh", "-c", std::string(R"(exec "$0" "$@" )") + closed, kiln::test::programPath(KILN_PROGRAM)});
    EXPECT_EQ(finish(start(words, folder / "output")), 0) << closed;
    EXPECT_EQ(rows(out).size(), 3u) << closed;
    EXPECT_EQ(newestStep(), 3) << closed;
  }
}

} // namespace
