// gpt2, bytelm and translate started with mpirun: the results of several processes, and their end after a stop, a kill
// or disagreement. Skipped if CMake found no MPI.

#include "test/models/parallel/mpirun.h"
#include "test/models/parallel/nccl_stubs.h"
#include "test/paths.h"

#include <random>

namespace {

// Two ranks have the results of one: equal rows of losses and norms, and equal validation, except for the order of
// sums, with dropout; and one log, one checkpoint.
TEST_F(Mpirun, TwoRanksTrainWhatOneTrains) {
  const std::vector<std::string> flags = {
      "--steps",          "8", "--accumulate",         "4", "--lr", "0.01", "--dropout", "0.1", "--evaluate-every", "4",
      "--gradient-norms", "4", "--evaluate-sequences", "5"};
  ASSERT_EQ(train(folder / "one", flags).status, 0);
  const Result two = trainOn(2, out, flags);
  ASSERT_EQ(two.status, 0) << two.output;
  const std::vector<Json> want = rows(folder / "one"), got = rows(out);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    for (const char *tag : {"loss", "grad_norm", "val_loss", "grad_norm_wte", "grad_norm_h.0"}) {
      ASSERT_EQ(got[i].contains(tag), want[i].contains(tag)) << tag;
      if (got[i].contains(tag)) {
        EXPECT_NEAR(got[i].at(tag).get<double>(), want[i].at(tag).get<double>(),
                    1e-5 * want[i].at(tag).get<double>()) // after updates: see RanksTest for a step
            << i << " " << tag;
      }
    }
  EXPECT_NE(two.output.find("2 ranks, each cpu (1 threads"), std::string::npos) << two.output;
}

// Two runs of two ranks have equal bits, and so has a resumed one. A run resumed with another number of ranks has equal
// losses except for the order of sums.
TEST_F(Mpirun, RunsOfAsManyRanksAreIdenticalAndGoOnWithOthers) {
  const std::vector<std::string> flags = {"--steps", "8", "--accumulate", "4", "--dtype", "fp16"};
  const std::vector<std::string> first = joined(flags, {"--stop-after", "4"});
  ASSERT_EQ(trainOn(2, folder / "whole", flags).status, 0);
  for (const char *name : {"same", "alone"})
    ASSERT_EQ(trainOn(2, folder / name, first).status, 0) << output();
  ASSERT_EQ(trainOn(2, folder / "same", {"--resume"}).status, 0) << output();
  ASSERT_EQ(train(folder / "alone", {"--resume"}).status, 0) << output();
  for (const char *file : {"model.safetensors", "optimizer.safetensors", "training.json"})
    EXPECT_TRUE(readText(folder / "whole/checkpoint-00000008/" + file) ==
                readText(folder / "same/checkpoint-00000008/" + file))
        << file;
  const std::vector<Json> whole = rows(folder / "whole"), alone = rows(folder / "alone");
  ASSERT_EQ(alone.size(), 8u);
  for (size_t i = 0; i < 8; ++i)
    EXPECT_NEAR(alone[i].at("loss").get<double>(), whole[i].at("loss").get<double>(), 0x1p-11) << i;
}

// A step with fewer micro-batches than ranks is cut into smaller ones. The run reports that, and its loss is equal.
TEST_F(Mpirun, AStepIsCutForItsRanks) {
  ASSERT_EQ(train(folder / "one", {"--steps", "1"}).status, 0);
  const Result two = trainOn(2, out, {"--steps", "1"});
  ASSERT_EQ(two.status, 0) << two.output;
  EXPECT_NE(two.output.find("a step has 2 micro-batches of 2 sequences, for 2 ranks"), std::string::npos) << two.output;
  const double want = rows(folder / "one")[0].at("loss");
  EXPECT_NEAR(rows(out)[0].at("loss").get<double>(), want, 1e-6 * want);
  expectMistake(trainOn(3, folder / "three", {"--steps", "1"}), "but got --accumulate 1 and --batch 4 for 3 ranks");
}

// A row that the first rank could not write, or whose evaluation was interrupted, waits in log.jsonl.rest. The next run
// writes it with its validation loss, and goes on.
TEST_F(Mpirun, ARowThatWaitsIsWrittenOnce) {
  const std::vector<std::string> flags = {"--steps", "4", "--accumulate", "2", "--evaluate-every", "2"};
  ASSERT_EQ(trainOn(2, folder / "whole", flags).status, 0) << output();
  const std::vector<Json> whole = rows(folder / "whole");
  for (const bool isEvaluated : {true, false}) {
    std::filesystem::remove_all(out);
    ASSERT_EQ(trainOn(2, out, joined(flags, {"--stop-after", "2"})).status, 0) << output();
    std::vector<Json> taken = rows(out);
    if (!isEvaluated)
      for (const char *tag : {"val_loss", "val_accuracy"})
        taken.at(1).erase(tag);
    writeText(out + "/log.jsonl", taken.at(0).dump() + "\n");
    writeText(out + "/log.jsonl.rest", taken.at(1).dump() + "\n");
    ASSERT_EQ(trainOn(2, out, {"--resume"}).status, 0) << output();
    const std::vector<Json> got = rows(out);
    ASSERT_EQ(got.size(), 4u) << output();
    for (size_t i = 0; i < 4; ++i)
      for (const char *tag : {"step", "loss", "val_loss"})
        EXPECT_EQ(got[i].value(tag, -1.0), whole[i].value(tag, -1.0)) << i << " " << tag;
  }
}

// After a signal to mpirun or to one process, all ranks stop with a checkpoint of a whole step.
TEST_F(Mpirun, SignalsSaveAndEndAll) {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    const pid_t launcher = startEndlessOnTwo();
    ASSERT_TRUE(waitForRows()) << output();
    kill(launcher, signal);
    finish(launcher); // mpirun has a status of its own after an interrupt
    EXPECT_NE(output().find("; --resume continues"), std::string::npos) << strsignal(signal) << "\n" << output();
    EXPECT_GE(newestStep(), static_cast<int64_t>(rows(out).size())) << strsignal(signal);
    std::filesystem::remove_all(out);
  }
  const pid_t launcher = startEndlessOnTwo();
  ASSERT_TRUE(waitForRows()) << output();
  kill(childrenOf(launcher).back(), SIGTERM);
  EXPECT_EQ(finish(launcher), 0) << output();
  EXPECT_GT(newestStep(), 0);
}

// If any rank is killed at any time, the job ends with a message that names it. The newest checkpoint is complete, and
// the run resumes from it.
TEST_F(Mpirun, AKilledRankEndsTheJob) {
  std::mt19937 engine(7);
  for (int round = 0; round < 3; ++round) {
    const pid_t launcher = startEndlessOnTwo({"--save-every", "3"});
    ASSERT_TRUE(waitUntil([&] { return kiln::newestCheckpoint(out).has_value(); })) << output();
    std::this_thread::sleep_for(std::chrono::microseconds(engine() % 200000));
    const std::vector<pid_t> processes = childrenOf(launcher);
    ASSERT_EQ(processes.size(), 2u);
    const pid_t victim = processes[round % 2];
    const int rank = rankOf(victim);
    ASSERT_GE(rank, 0);
    kill(victim, SIGKILL);
    bool ended = false;
    int status = 0;
    for (int i = 0; i < 1000 && !ended; ++i) { // ten seconds
      ended = waitpid(launcher, &status, WNOHANG) == launcher;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ASSERT_TRUE(ended) << output();
    EXPECT_NE(status, 0);
    EXPECT_NE(output().find("rank " + std::to_string(rank)), std::string::npos) << output();
    for (const pid_t process : processes)
      EXPECT_TRUE(waitUntil([&] { return hasEnded(process); })) << process;
    const std::string newest = *kiln::newestCheckpoint(out);
    EXPECT_FALSE(kiln::wholeCheckpointBefore(newest).has_value()) << newest; // for that is whole
    const int64_t step = kiln::readRunState(newest).step;
    EXPECT_EQ(trainOn(2, out, {"--resume", "--stop-after", std::to_string(step + 1)}).status, 0) << output();
    std::filesystem::remove_all(out);
  }
}

// Ranks with other data, or other flags, are an error that names the rank. Invalid flags are errors, too.
TEST_F(Mpirun, UnequalRanksAreAnError) {
  const auto both = [&](std::vector<std::string> second) {
    const std::vector<std::string> flags = trainWords(out, {"--steps", "2", "--accumulate", "2"}),
                                   other = {":", "-n", "1", kiln::test::programPath(KILN_PROGRAM)};
    std::vector<std::string> words = joined(joined(joined(launched(1), flags), other), flags);
    words.insert(words.end(), second.begin(), second.end());
    return Result{finish(start(words, folder / "output")), output()};
  };
  writeText(folder / "other", readText(data) + "more");
  const Result data = both({"--data", folder / "other"});
  expectResult(data, 2, {"expected all 2 ranks to have the same data, but rank 0 has "});
  expectMistake(both({"--lr", "0.5"}), "expected all 2 ranks to have the same settings");
  const Result none = trainOn(2, out, {"--data", folder / "nothing"});
  EXPECT_EQ(none.status, 2) << none.output;
}

// Without the MPI module, or with another file in its place, ranks end with an error that names it. A single process
// does not need it.
TEST_F(Mpirun, AModuleThatIsMissingIsTold) {
  const std::string module = folder / "libkiln_mpi.so";
  setenv("LD_LIBRARY_PATH", folder.path.c_str(), 1);
  writeText(module, "none");
  const Result missing = trainOn(2, out, {"--steps", "1"}), alone = trainOn(1, folder / "alone", {"--steps", "1"});
  std::filesystem::copy_file(kiln::test::ncclStub(), module, std::filesystem::copy_options::overwrite_existing);
  const Result other = trainOn(2, out, {"--steps", "1"});
  unsetenv("LD_LIBRARY_PATH");
  expectResult(missing, 3, {"libkiln_mpi.so', which 2 ranks exchange by, but"});
  EXPECT_EQ(alone.status, 0) << alone.output;
  EXPECT_NE(other.output.find("it has no 'kilnMpiModule'"), std::string::npos) << other.output;
}

// The other programs use the same trainer: two ranks have the losses of one process.
TEST_F(Mpirun, BytelmTrainsOnTwo) {
  expectSameLosses(kiln::test::programPath("bytelm"),
                   {"train", "--data", data, "--model", "small", "--context", "8", "--layers", "1", "--heads", "2",
                    "--width", "16", "--inner", "32", "--batch", "4", "--steps", "2"});
}

TEST_F(Mpirun, TranslateTrainsOnTwo) {
  std::string sources, targets;
  for (int i = 0; i < 40; ++i) {
    sources += i % 3 ? "eins zwei\n" : "zwei drei eins\n";
    targets += i % 3 ? "two one\n" : "one three two\n";
  }
  const std::string source = folder / "pairs.de", target = folder / "pairs.en";
  writeText(source, sources), writeText(target, targets);
  writeText(folder / "words", "one two three eins zwei drei\n");
  ASSERT_EQ(finish(start({kiln::test::programPath("tokens"), "train", folder / "words", "--out", folder / "tokens",
                          "--style", "whole-words", "--min-count", "1"},
                         folder / "output")),
            0)
      << output();
  expectSameLosses(kiln::test::programPath("translate"), {"train",
                                                          "--source",
                                                          source,
                                                          "--target",
                                                          target,
                                                          "--validation-source",
                                                          source,
                                                          "--validation-target",
                                                          target,
                                                          "--tokens",
                                                          folder / "tokens",
                                                          "--encoder-layers",
                                                          "1",
                                                          "--layers",
                                                          "1",
                                                          "--heads",
                                                          "2",
                                                          "--width",
                                                          "16",
                                                          "--inner",
                                                          "32",
                                                          "--context",
                                                          "8",
                                                          "--batch",
                                                          "4",
                                                          "--accumulate",
                                                          "2",
                                                          "--steps",
                                                          "2"});
}

// --- Several GPUs ----------------------------------------------------------------------------------------------------

// gpt2 on several GPUs, started with mpirun: the GPUs are the stub driver's, and ranks exchange by the stub of NCCL's
// library.

class NcclMpirun : public Mpirun {
protected:
  void SetUp() override {
    Mpirun::SetUp();
    ::setenv("KILN_CUDA_DRIVER", kiln::test::stubDriver().c_str(), 1);
    ::setenv("CUDA_PATH", "", 1);
    ::setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
    ::setenv("KILN_NCCL", kiln::test::ncclStub().c_str(), 1);
  }
  void TearDown() override {
    for (const char *name : {"CUDA_VISIBLE_DEVICES", "KILN_NCCL", "KILN_STUB_NCCL"})
      ::unsetenv(name);
    Mpirun::TearDown();
  }
  /// Two ranks take three steps.
  Result trainOnGpus(const std::string &to, const std::string &device = "cuda") {
    return trainOn(2, to, {"--device", device, "--steps", "3", "--accumulate", "2", "--save-every", "1"});
  }
};

// Two ranks on a GPU each have equal bits by NCCL and through host memory.
TEST_F(NcclMpirun, TrainsWhatTheHostsMemoryDoes) {
  const Result direct = trainOnGpus(out);
  ASSERT_EQ(direct.status, 0) << direct.output;
  EXPECT_EQ(direct.output.find("through the host's memory"), std::string::npos) << direct.output;
  ::setenv("KILN_NCCL", "", 1);
  const Result staged = trainOnGpus(folder / "staged");
  ASSERT_EQ(staged.status, 0) << staged.output;
  EXPECT_NE(staged.output.find("ranks exchange through the host's memory: KILN_NCCL is empty"), std::string::npos)
      << staged.output;
  for (const char *file : {"model.safetensors", "optimizer.safetensors"})
    EXPECT_TRUE(readText(out + "/checkpoint-00000003/" + file) ==
                readText(folder / "staged/checkpoint-00000003/" + file))
        << file;
}

// `cuda` selects a GPU for each rank of a machine, which must have as many.
TEST_F(NcclMpirun, EachRankHasAGpu) {
  ::setenv("CUDA_VISIBLE_DEVICES", "0", 1);
  expectResult(trainOnGpus(out), 3, {"expected a GPU for each of the 2 ranks on this machine, but the driver has 1"});
  expectResult(trainOnGpus(out, "cuda:0"), 0, {"through the host's memory: some share a GPU"});
}

// If a rank ends during an exchange, the job ends with a message, and the newest checkpoint is complete.
TEST_F(NcclMpirun, ADeadRankEndsTheJob) {
  ::setenv("KILN_STUB_NCCL", "die=1:8", 1); // in the third step; each has an exchange and two that gather
  const Result killed = trainOnGpus(out);
  EXPECT_NE(killed.status, 0);
  // By the other rank, or by mpirun, whichever is first.
  EXPECT_TRUE(killed.output.find("remote process exited") != std::string::npos ||
              killed.output.find("Exit code:    9") != std::string::npos)
      << killed.output;
  EXPECT_EQ(newestStep(), 2) << killed.output;
  ::unsetenv("KILN_STUB_NCCL");
  const Result resumed = trainOn(2, out, {"--device", "cuda", "--resume"});
  EXPECT_EQ(resumed.status, 0) << resumed.output;
  EXPECT_EQ(newestStep(), 3);
}

} // namespace
