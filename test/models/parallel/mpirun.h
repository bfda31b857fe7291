// gpt2, bytelm and translate as a user starts them with mpirun; skipped where CMake found no MPI.

#pragma once

#include "models/train/checkpoint.h"
#include "test/models/gpt2/program.h"
#include "test/paths.h"

class Mpirun : public ProgramTest {
protected:
  void SetUp() override {
    if (std::string(KILN_MPIRUN).empty())
      GTEST_SKIP() << "there is no MPI: tools/setup installs Open MPI";
  }
  /// The words that start `program` on so many ranks on any machine: as root, with fewer cores than ranks, in a
  /// container where processes may not read each other's memory.
  static std::vector<std::string> launched(int ranks,
                                           const std::string &program = kiln::test::programPath(KILN_PROGRAM)) {
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
    setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
    setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 1);
    setenv("OMPI_MCA_btl", "self,vader", 1);
    return {KILN_MPIRUN, "-n", std::to_string(ranks), program};
  }
  Result trainOn(int ranks, const std::string &out, const std::vector<std::string> &more,
                 const std::string &program = kiln::test::programPath(KILN_PROGRAM)) {
    const int status = finish(start(joined(launched(ranks, program), trainWords(out, more)), folder / "output"));
    return {status, readText(folder / "output")};
  }
  /// A run on two ranks that never ends by itself, after its first step.
  pid_t startEndlessOnTwo(const std::vector<std::string> &more = {}) {
    const std::vector<std::string> words = trainWords(out, joined({"--steps", "1000000", "--overwrite"}, more));
    return start(joined(launched(2), words), folder / "output");
  }
  /// Trains in one process and on two ranks, by these words and a folder; their losses differ by at most 1e-5.
  void expectSameLosses(const std::string &program, const std::vector<std::string> &words) {
    const std::vector<std::string> one = joined(joined({program}, words), {"--out", folder / "one"}),
                                   two = joined(joined(launched(2, program), words), {"--out", out});
    ASSERT_EQ(finish(start(one, folder / "output")), 0) << output();
    ASSERT_EQ(finish(start(two, folder / "output")), 0) << output();
    const auto wanted = rows(folder / "one"), got = rows(out);
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const double want = wanted[i].at("loss");
      EXPECT_NEAR(got[i].at("loss").get<double>(), want, 1e-5 * want);
    }
  }
  std::string output() const { return readText(folder / "output"); }
  int64_t newestStep() const {
    const auto checkpoint = kiln::newestCheckpoint(out);
    return checkpoint ? kiln::readRunState(*checkpoint).step : -1;
  }
  /// The processes that `parent` started.
  static std::vector<pid_t> childrenOf(pid_t parent) {
    std::istringstream list(
        readText("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children"));
    std::vector<pid_t> all;
    for (pid_t child = 0; list >> child;)
      all.push_back(child);
    return all;
  }
  /// Whether a process has ended, also before its parent waits for it.
  static bool hasEnded(pid_t process) {
    const std::string stat = readText("/proc/" + std::to_string(process) + "/stat");
    return stat.empty() || stat.find(") Z ") != std::string::npos;
  }
  /// The rank of a process, from mpirun's environment variable.
  static int rankOf(pid_t process) {
    const std::string all = readText("/proc/" + std::to_string(process) + "/environ"), name = "OMPI_COMM_WORLD_RANK=";
    const size_t place = all.find(name);
    return place == std::string::npos ? -1 : std::atoi(all.c_str() + place + name.size());
  }
};
