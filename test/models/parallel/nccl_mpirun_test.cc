// gpt2 on several GPUs, started with mpirun: the GPUs are the stub driver's, and ranks exchange by the stub of NCCL's
// library.

#include "test/models/parallel/mpirun.h"
#include "test/models/parallel/nccl_stubs.h"

namespace {

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
