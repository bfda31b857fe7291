// Wavefronts and sectors, by the model that Metrics.h states.

#include "runtime/simulator/Metrics.h"
#include "runtime/simulator/Report.h"
#include "test/runtime/simulator/machine.h"

#include <map>
#include <sstream>

namespace kiln::simulator::test {

/// Addresses `stride` bytes apart, from a multiple of 128.
static LaneAddresses apart(int64_t stride) {
  LaneAddresses at;
  for (int64_t lane = 0; lane < lanesOfWarp; ++lane)
    at[static_cast<size_t>(lane)] = reinterpret_cast<char *>(4096 + lane * stride);
  return at;
}

// Consecutive words take one wavefront. Words in one bank take as many as there are lanes.
TEST(MetricsTest, ConflictsOfWords) {
  EXPECT_EQ(wavefrontsOf(apart(4), allLanes, 4), 1);
  EXPECT_EQ(wavefrontsOf(apart(8), allLanes, 4), 2);
  EXPECT_EQ(wavefrontsOf(apart(128), allLanes, 4), 32);
  EXPECT_EQ(wavefrontsOf(apart(132), allLanes, 4), 1);
  EXPECT_EQ(idealWavefrontsOf(apart(128), allLanes, 4), 1);
}

// Lanes that read the same word are served at once.
TEST(MetricsTest, SameWord) {
  EXPECT_EQ(wavefrontsOf(apart(0), allLanes, 4), 1);
  EXPECT_EQ(wavefrontsOf(apart(1), allLanes, 1), 1);
}

// Wide accesses take two passes of 16 lanes or four of 8.
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

// The bytes in flight after a wait are those of the groups that it leaves pending.
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

// A schedule may list the blocks that run; each has its own coordinates and the whole grid's extents.
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

/// The table of a launch of one block.
static std::string tableOf(const std::string &text, const std::string &kernel, int threads,
                           const std::function<void(Memory &, std::vector<uint64_t> &)> &place) {
  Memory memory;
  Findings findings;
  const auto program = buildProgram(std::make_shared<ptx::Module>(ptx::parse(text)), kernel, memory);
  Metrics metrics(*program);
  std::vector<uint64_t> block;
  place(memory, block);
  launch(*program, {1, 1, 1}, {threads, 1, 1}, 0, reinterpret_cast<const char *>(block.data()), memory, findings, {},
         &metrics);
  return reportTable(*program, metrics);
}

/// The numbers of a table's row, by the name of its column; of two columns of one name the first.
static std::map<std::string, std::string> rowOf(const std::string &table, const std::string &name) {
  std::stringstream lines(table);
  std::string head, line;
  std::getline(lines, head);
  while (std::getline(lines, line) && line.find(name) == std::string::npos)
    continue;
  std::map<std::string, std::string> row;
  size_t at = head.find("instructions") - 1; // behind the names
  std::stringstream columns(head.substr(at));
  for (std::string column; columns >> column;) {
    const size_t end = head.find(column, at) + column.size();
    std::string number = line.size() >= end ? line.substr(at, end - at) : "";
    number.erase(0, std::min(number.size(), number.find_first_not_of(' ')));
    row.try_emplace(column, number);
    at = end;
  }
  return row;
}

static void placeWords(Memory &memory, std::vector<uint64_t> &block) {
  block.push_back(reinterpret_cast<uint64_t>(memory.allocate(1 << 16)));
}

// Every kind of access is in the table, and those of one line are distinguished: here for a warp, by hand.
TEST(ReportTest, CountsEveryAccess) {
  const std::string table = tableOf(
      kernel(1,
             ".local .align 4 .b8 mine[64];\n.shared .align 128 .b8 s[4096];\n.reg .b32 %r<12>; .reg .b64 %a;\n"
             ".loc 1 7 1\n",
             "mul.wide.u32 %a, %t, 16;\nadd.u64 %a, %a, %p0;\nmov.u32 %r2, s;\nmad.lo.u32 %r2, %t, 16, %r2;\n"
             "cp.async.cg.shared.global [%r2], [%a], 16;\ncp.async.commit_group;\ncp.async.wait_group 0;\nbar.sync 0;\n"
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r6,%r7,%r8,%r9}, [%r2];\nst.local.b32 [mine], %t;\n"
             "ld.local.b32 %r10, [mine];\nbar.warp.sync -1;\natom.shared.add.u32 %r11, [s], 1;\n"
             "red.global.add.u32 [%p0], 1;"),
      "k", 32, placeWords);
  const auto expect = [&](const std::string &row, const std::map<std::string, std::string> &wanted) {
    std::map<std::string, std::string> got = rowOf(table, row);
    for (const auto &[column, want] : wanted)
      EXPECT_EQ(got[column], want) << row << " " << column << "\n" << table;
  };
  expect(": cp.async.cg", {{"shared", "1"}, {"wavefronts", "4"}, {"global", "1"}, {"sectors", "16"}, {"local", "0"}});
  expect(": ldmatrix", {{"shared", "1"}, {"wavefronts", "4"}, {"global", "0"}});
  expect(": st.local.b32", {{"local", "1"}, {"shared", "0"}, {"global", "0"}});
  expect(": atom.shared", {{"shared", "1"}, {"wavefronts", "1"}});
  expect(": red.global", {{"global", "1"}, {"sectors", "1"}});
  expect("all", {{"local", "2"}, {"shared", "3"}, {"global", "2"}, {"barriers", "3"}, {"waits", "1"}, {"memory", "7"}});
}

// Local memory of a warp is interleaved by words: 32 lanes' words at one offset are four sectors.
TEST(MetricsTest, LocalSectors) {
  LaneAddresses at = apart(256);
  StepMetrics counts;
  Metrics none{Program()};
  none.addLocalAccess(counts, at[0], 256, at, allLanes, 4);
  EXPECT_EQ(counts.localSectors, 4);
  none.addLocalAccess(counts, at[0], 256, at, allLanes, 8);
  EXPECT_EQ(counts.localSectors, 4 + 8);
  none.addLocalAccess(counts, at[0], 256, at, 0x101, 4);
  EXPECT_EQ(counts.localSectors, 4 + 8 + 2);
  EXPECT_EQ(counts.localAccesses, 3);
}

// Bytes of a bulk copy are counted where it begins, in and out; waiting for it is a wait.
TEST(ReportTest, CountsBulkBytes) {
  const std::string table =
      tableOf(hopperKernel(1, ".shared .align 8 .b64 bar;\n.shared .align 128 .b32 data[64];\n.reg .pred %q;",
                           "mbarrier.init.shared::cta.b64 [bar], 1;\nfence.proxy.async.shared::cta;\n"
                           "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 64;\n"
                           "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [data], [%p0], 64, [bar];\n"
                           "W:\nmbarrier.try_wait.parity.shared::cta.b64 %q, [bar], 0;\n@!%q bra W;\n"
                           "cp.async.bulk.global.shared::cta.bulk_group [%p0], [data], 48;\n"
                           "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"),
              "k", 1, placeWords);
  EXPECT_EQ(rowOf(table, "PTX line 21")["bulk"], "64") << table;
  EXPECT_EQ(rowOf(table, "PTX line 25")["bulk"], "48") << table;
  EXPECT_EQ(rowOf(table, "all")["bulk"], "112") << table;
  EXPECT_EQ(rowOf(table, "all")["barriers"], "4") << table;
}

// wgmma reads A's 64 rows and B's columns once, each 16 halves: 64 · 16 · 2 + 8 · 16 · 2 bytes.
TEST(ReportTest, CountsOperandsOfWgmma) {
  const std::string table = tableOf(
      hopperKernel(1, ".shared .align 1024 .b8 pool[8192];\n.reg .f32 %d<4>; .reg .b64 %e; .reg .b32 %r;",
                   "mov.u32 %r, pool;\nmov.b64 %e, 274877972544;\nwgmma.fence.sync.aligned;\n"
                   "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0,%d1,%d2,%d3}, %e, %e, 0, 1, 1, 0, 0;\n"
                   "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"),
      "k", 128, placeWords);
  EXPECT_EQ(rowOf(table, "all")["operands"], "2304") << table;
  EXPECT_EQ(rowOf(table, "all")["matrix"], "4") << table;
  EXPECT_EQ(rowOf(table, "all")["waits"], "4") << table;
}

} // namespace kiln::simulator::test
