// The report of a deadlock: which threads wait for which event, which have arrived, and where the others are.

#include "test/expect_error.h"
#include "test/runtime/simulator/machine.h"

namespace kiln::simulator::test {

/// The findings in a block of `threads` threads that runs the body, which begins on line 18 of the text.
static std::vector<std::string> deadlockOf(const std::string &body, int threads) {
  Machine machine(hopperKernel(0,
                               ".shared .align 16 .b64 bar;\n.shared .align 16 .b8 data[64];\n"
                               ".reg .pred %q<2>;\n.reg .b64 %s;",
                               body));
  machine.run("k", {1, 1, 1}, {threads, 1, 1}, {});
  return machine.found();
}

TEST(DeadlockTest, OfABarrierThatTooFewReach) {
  EXPECT_EQ(deadlockOf("setp.ge.u32 %q0, %n2, 64;\n@%q0 bra END;\nbar.sync 2, 96;\nEND:\n", 128),
            (std::vector<std::string>{"deadlock: barrier 2 waits for 96 threads, but only 64 have come, from warps 0 "
                                      "and 1, and no thread can make progress; warps 2 and 3: ended"}));
}

TEST(DeadlockTest, OfTwoBarriersThatWaitForEachOther) {
  EXPECT_EQ(
      deadlockOf("setp.ge.u32 %q0, %n2, 32;\n@%q0 bra OTHER;\nbar.sync 1;\nbra END;\nOTHER:\nbar.sync 2;\nEND:\n", 64),
      (std::vector<std::string>{"deadlock: barrier 1 waits for 64 threads, but only 32 have come, from warp 0, and no "
                                "thread can make progress; warp 1: at barrier 2, PTX line 23",
                                "deadlock: barrier 2 waits for 64 threads, but only 32 have come, from warp 1, and no "
                                "thread can make progress; warp 0: at barrier 1, PTX line 20"}));
}

TEST(DeadlockTest, OfAClustersBarrier) {
  EXPECT_EQ(
      deadlockOf("setp.ge.u32 %q0, %n2, 32;\n@%q0 bra OTHER;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n"
                 "OTHER:\nbar.sync 0;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n",
                 64),
      (std::vector<std::string>{"deadlock: the cluster's barrier waits for 64 threads, but only 32 have come, "
                                "from warp 0, and no thread can make progress; warp 1: at barrier 0, PTX line 23",
                                "deadlock: barrier 0 waits for 64 threads, but only 32 have come, from warp 1, "
                                "and no thread can make progress; warp 0: at the cluster's barrier, PTX line 21"}));
}

TEST(DeadlockTest, OfAnMbarrierThatLacksArrivals) {
  EXPECT_EQ(deadlockOf("setp.ne.u32 %q0, %n2, 0;\n@!%q0 mbarrier.init.shared::cta.b64 [bar], 2;\nbar.sync 0;\n"
                       "setp.ge.u32 %q1, %n2, 32;\n@%q1 bra OTHER;\n"
                       "@!%q0 mbarrier.arrive.shared::cta.b64 _, [bar];\nbar.sync 1, 32;\nbra WAIT;\n"
                       "OTHER:\nbar.sync 3, 32;\nexit;\n"
                       "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %q0, [bar], 0;\n@!%q0 bra WAIT;\n",
                       64),
            (std::vector<std::string>{
                "deadlock: lanes 0xffffffff of warp 0 wait for the end of phase 0 of the mbarrier at 0: 1 of 2 "
                "arrivals and 0 bytes are pending, warp 0 arrived, and no thread can make progress; warp 1: ended"}));
}

TEST(DeadlockTest, OfBytesThatNobodyCopies) {
  EXPECT_EQ(
      deadlockOf("mbarrier.init.shared::cta.b64 [bar], 1;\n"
                 "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 48;\n"
                 "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %q0, [bar], 0;\n@!%q0 bra WAIT;\n",
                 1),
      (std::vector<std::string>{
          "deadlock: lanes 0x1 of warp 0 wait for the end of phase 0 of the mbarrier at 0: 0 of 1 arrivals and "
          "48 bytes are pending, which no copy under way brings, warp 0 arrived, and no thread can make progress"}));
}

// A lane that waits does not keep the others of its warp from coming; here they have left.
TEST(DeadlockTest, OfALaneThatWaitsForItsWarp) {
  EXPECT_EQ(deadlockOf("setp.ne.u32 %q0, %n2, 0;\n@%q0 exit;\nmbarrier.init.shared::cta.b64 [bar], 2;\n"
                       "mbarrier.arrive.shared::cta.b64 _, [bar];\n"
                       "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %q0, [bar], 0;\n@!%q0 bra WAIT;\n",
                       32),
            (std::vector<std::string>{
                "deadlock: lanes 0x1 of warp 0 wait for the end of phase 0 of the mbarrier at 0: 1 of 2 arrivals and 0 "
                "bytes are pending, warp 0 arrived, and no thread can make progress; warp 0: ended in part"}));
}

TEST(DeadlockTest, OfAQuestionThatIsAskedForEver) {
  EXPECT_EQ(deadlockOf("mbarrier.init.shared::cta.b64 [bar], 1;\n"
                       "WAIT:\nmbarrier.test_wait.parity.shared::cta.b64 %q0, [bar], 0;\n@!%q0 bra WAIT;\n",
                       1),
            (std::vector<std::string>{"deadlock: lanes 0x1 of warp 0 wait for the end of phase 0 of the mbarrier at 0: "
                                      "1 of 1 arrivals and 0 bytes are pending, and no thread can make progress"}));
}

// A loop that counts is no deadlock: it ends after a limit of instructions, and the error has its line.
TEST(DeadlockTest, OrALoopThatIsGivenUp) {
  Machine machine(kernel(0, ".reg .b32 %r; .reg .pred %q;",
                         "mov.b32 %r, 1;\nAGAIN:\nadd.u32 %r, %r, 2;\nsetp.ne.u32 %q, %r, 0;\n@%q bra AGAIN;"));
  expectError(
      [&] { machine.run("k", {1, 1, 1}, {64, 1, 1}, {}, 0, {.checks = Checks::named("-all"), .maxSteps = 100000}); },
      {"kernel 'k': warp 0 has not ended after", "PTX line"});
}

} // namespace kiln::simulator::test
