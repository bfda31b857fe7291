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

// Bytes are those that are touched, each once.
TEST(MetricsTest, Bytes) {
  EXPECT_EQ(bytesOf(apart(4), allLanes, 4), 128);
  EXPECT_EQ(bytesOf(apart(16), allLanes, 16), 512);
  EXPECT_EQ(bytesOf(apart(2), allLanes, 2), 64);
  EXPECT_EQ(bytesOf(apart(0), allLanes, 4), 4);
  EXPECT_EQ(bytesOf(apart(4), 0xff, 4), 32);
}

/// A kernel with two groups of copies, the first of 16 and the second of 8 bytes a lane, and two waits.
static std::shared_ptr<const Program> copies(Memory &memory) {
  const auto parsed = std::make_shared<ptx::Module>(
      ptx::parse(kernel(1, ".shared .align 16 .b8 place[2048];\n.reg .b32 %r, %u;",
                        "mov.u32 %r, place;\nshl.b32 %u, %t, 4;\nadd.u32 %r, %r, %u;\n"
                        "cp.async.cg.shared.global [%r], [%p0], 16;\ncp.async.commit_group;\n"
                        "cp.async.ca.shared.global [%r+1024], [%p0], 8;\ncp.async.commit_group;\n"
                        "cp.async.wait_group 1;\ncp.async.wait_group 0;")));
  return buildProgram(parsed, "k", memory);
}

// A wait leaves in flight what groups behind its own copy.
TEST(MetricsTest, BytesInFlight) {
  Memory memory;
  Findings findings;
  const auto program = copies(memory);
  Metrics metrics(*program);
  const uint64_t place = reinterpret_cast<uint64_t>(memory.allocate(64));
  launch(*program, {1, 1, 1}, {32, 1, 1}, 0, reinterpret_cast<const char *>(&place), memory, findings, {}, &metrics);
  std::vector<int64_t> found;
  for (size_t step = 0; step < program->codes[0].steps.size(); ++step)
    if (const int64_t bytes = metrics.at(0, static_cast<int>(step)).bytesInFlight)
      found.push_back(bytes);
  EXPECT_EQ(found, std::vector<int64_t>{32 * 8});
}

// A schedule may name the blocks that run; each still knows its own coordinates and the whole grid.
TEST(MetricsTest, OnlySomeBlocks) {
  Memory memory;
  Findings findings;
  const auto parsed = std::make_shared<ptx::Module>(
      ptx::parse(kernel(1, ".reg .b32 %r, %g;\n.reg .b64 %q;",
                        "mov.u32 %r, %ctaid.x;\nmov.u32 %g, %nctaid.x;\nmul.wide.u32 %q, %r, 4;\n"
                        "add.u64 %q, %q, %p0;\nst.global.u32 [%q], %g;")));
  const auto program = buildProgram(parsed, "k", memory);
  auto *const words = static_cast<uint32_t *>(memory.allocate(8 * 4));
  const uint64_t place = reinterpret_cast<uint64_t>(words);
  launch(*program, {8, 1, 1}, {32, 1, 1}, 0, reinterpret_cast<const char *>(&place), memory, findings,
         {.only = {{1, 0, 0}, {6, 0, 0}}});
  EXPECT_EQ(std::vector<uint32_t>(words, words + 8), (std::vector<uint32_t>{0, 8, 0, 0, 0, 0, 8, 0}));
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
