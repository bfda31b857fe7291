// Wavefronts and sectors, by the model that Metrics.h states.

#include "runtime/simulator/Metrics.h"
#include "test/runtime/simulator/machine.h"

namespace kiln::simulator::test {

/// Addresses `stride` bytes apart, from a multiple of 128.
static LaneAddresses apart(int64_t stride) {
  LaneAddresses at;
  for (int64_t lane = 0; lane < lanesOfWarp; ++lane)
    at[static_cast<size_t>(lane)] = reinterpret_cast<char *>(4096 + lane * stride);
  return at;
}

// Words one after the other take one wavefront, words a bank's distance apart as many as there are lanes in a bank.
TEST(MetricsTest, ConflictsOfWords) {
  EXPECT_EQ(wavefrontsOf(apart(4), allLanes, 4), 1);
  EXPECT_EQ(wavefrontsOf(apart(8), allLanes, 4), 2);
  EXPECT_EQ(wavefrontsOf(apart(128), allLanes, 4), 32);
  EXPECT_EQ(wavefrontsOf(apart(132), allLanes, 4), 1);
  EXPECT_EQ(idealWavefrontsOf(apart(128), allLanes, 4), 1);
}

// Lanes that want the same word get it at once.
TEST(MetricsTest, SameWord) {
  EXPECT_EQ(wavefrontsOf(apart(0), allLanes, 4), 1);
  EXPECT_EQ(wavefrontsOf(apart(1), allLanes, 1), 1);
}

// Wide accesses go in two passes of 16 lanes or four of 8.
TEST(MetricsTest, WideAccesses) {
  EXPECT_EQ(wavefrontsOf(apart(8), allLanes, 8), 2);
  EXPECT_EQ(wavefrontsOf(apart(16), allLanes, 16), 4);
  EXPECT_EQ(wavefrontsOf(apart(128), allLanes, 16), 32); // each pass has 8 rows in the same 4 banks
  EXPECT_EQ(idealWavefrontsOf(apart(128), allLanes, 16), 4);
  EXPECT_EQ(wavefrontsOf(apart(128), 0xff, 16), 8);
  LaneAddresses again = apart(16); // eight lanes' rows, which the other passes want, too
  for (size_t lane = 8; lane < lanesOfWarp; ++lane)
    again[lane] = again[lane % 8];
  EXPECT_EQ(wavefrontsOf(again, allLanes, 16), 4);
}

// Sectors are those of 32 bytes that are touched.
TEST(MetricsTest, Sectors) {
  EXPECT_EQ(sectorsOf(apart(4), allLanes, 4), 4);
  EXPECT_EQ(sectorsOf(apart(64), allLanes, 4), 32);
  EXPECT_EQ(idealSectorsOf(apart(64), allLanes, 4), 4);
  EXPECT_EQ(sectorsOf(apart(0), allLanes, 4), 1);
  EXPECT_EQ(sectorsOf(apart(4), 0xff, 4), 1);
}

// A launch counts every instruction of every warp, and its traffic.
TEST(MetricsTest, OfALaunch) {
  Memory memory;
  Findings findings;
  const auto parsed = std::make_shared<ptx::Module>(
      ptx::parse(kernel(1, ".shared .b32 place[1024];\n.reg .b32 %r, %u;",
                        "mov.u32 %r, place;\nshl.b32 %u, %t, 7;\nand.b32 %u, %u, 4095;\nadd.u32 %r, %r, %u;\n"
                        "st.shared.u32 [%r], 1;")));
  const auto program = buildProgram(parsed, "k", memory);
  Metrics metrics(*program);
  const uint64_t place = reinterpret_cast<uint64_t>(memory.allocate(64));
  launch(*program, {2, 1, 1}, {64, 1, 1}, 0, reinterpret_cast<const char *>(&place), memory, findings, {}, &metrics);
  StepMetrics total;
  for (size_t step = 0; step < program->codes[0].steps.size(); ++step)
    if (metrics.at(0, static_cast<int>(step)).sharedAccesses)
      total.add(metrics.at(0, static_cast<int>(step)));
  EXPECT_EQ(total.instructions, 4); // two blocks of two warps
  EXPECT_EQ(total.sharedAccesses, 4);
  EXPECT_EQ(total.wavefronts, 4 * 32);
  EXPECT_EQ(total.idealWavefronts, 4);
}

} // namespace kiln::simulator::test
