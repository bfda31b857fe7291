// Counts of launches that can be counted by hand, and the file with them.

#include "kernels/add.h"
#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "test/temporary_folder.h"
#include "tools/kiln-bench/static_rows.h"

#include <gtest/gtest.h>

namespace kiln::bench::test {

namespace {
struct SampleTest : testing::Test {
  TensorRef make(const Shape &extents, Type type) {
    TensorRef tensor = TensorRef::dense(nullptr, type, extents);
    tensor.data = memory.allocate(tensor.bytes());
    return tensor;
  }
  Sample sample(const Plan &plan, int programs = 4) {
    const std::vector<char> code = codeOf(*device, plan.launches[0]);
    return takeSample(*device, plan.launches[0], {code.begin(), code.end()}, memory, nullptr, programs);
  }

  simulator::Memory memory;
  std::shared_ptr<Device> device = Device::open("simulator:sm_80");
};
} // namespace

// A sum of vectors reads two and writes one, whole sectors of each, and has no loop.
TEST_F(SampleTest, Sum) {
  constexpr int64_t block = 1024;
  const TensorRef x = make({1 << 20}, bf16), y = make({1 << 20}, bf16), out = make({1 << 20}, bf16);
  AddConfig config;
  config.block = block;
  const Sample found = sample(planAdd(device->target(), x, y, out, config));
  EXPECT_EQ(found.ofProgram.loadSectors, 2 * block * 2 / 32);
  EXPECT_EQ(found.ofProgram.storeSectors, block * 2 / 32);
  EXPECT_EQ(found.ofProgram.idealLoadSectors, found.ofProgram.loadSectors);
  EXPECT_EQ(found.ofProgram.bytesOfLane(), 16);
  EXPECT_EQ(found.ofProgram.barriers, 0);
  EXPECT_EQ(found.rounds, 0);
}

// A product's main loop has a round for each step of K, and all of the multiplications.
TEST_F(SampleTest, Product) {
  constexpr int64_t size = 256, length = 192;
  MatmulConfig config;
  config.bm = config.bn = 64;
  config.bk = 32;
  const TensorRef a = make({size, length}, bf16), b = make({length, size}, bf16), c = make({size, size}, bf16);
  const Sample found = sample(planMatmul(device->target(), Layout::nn, a, b, c, false, config), 3);
  EXPECT_EQ(found.threads, 128);
  EXPECT_EQ(found.rounds, length / 32);
  EXPECT_EQ(found.round.mmaOperations, 2.0 * 64 * 64 * 32);
  EXPECT_EQ(found.program.mmaOperations, 2.0 * 64 * 64 * length);
  EXPECT_EQ(found.round.mmaType, "bf16");
  // The tiles of two iterations are copied before the loop, and its last two iterations copy none.
  EXPECT_DOUBLE_EQ(found.ofRound.idealLoadSectors, 2 * 64 * 32 * 2 / 32 * (length / 32 - 2.0) / (length / 32));
  EXPECT_GE(found.ofRound.barriers, 1);
  EXPECT_GE(found.ofRound.wavefronts, found.ofRound.conflictFreeWavefronts);
  EXPECT_GE(found.ofRound.conflictFreeWavefronts, found.ofRound.idealWavefronts);
}

// Counts are averages over programs; tiles that extend past the edge have less work.
TEST_F(SampleTest, Averages) {
  constexpr int64_t size = 512, length = 64;
  MatmulConfig config;
  config.bm = config.bn = 64;
  config.bk = 32;
  const TensorRef a = make({size, length}, bf16), b = make({length, 64}, bf16), c = make({size, 64}, bf16);
  const TensorRef little = a.slice(0, 0, size / 2 + 1), less = c.slice(0, 0, size / 2 + 1);
  const Sample whole = sample(planMatmul(device->target(), Layout::nn, a, b, c, false, config), 100);
  const Sample ragged = sample(planMatmul(device->target(), Layout::nn, little, b, less, false, config), 100);
  EXPECT_EQ(whole.ofProgram.storeSectors, 64 * 64 * 2 / 32);
  EXPECT_DOUBLE_EQ(ragged.ofProgram.storeSectors, (4 * 64 + 1) * 64 * 2 / 32 / 5.0);
}

// The sampled programs are from all over the grid. Iterations of causal attention grow with the program: of two sampled
// programs, one is short and one is long. The main loop is that of iterations without masks: program i of 8 has i.
TEST_F(SampleTest, Spread) {
  constexpr int64_t rows = 512;
  AttentionConfig config;
  config.bm = config.bn = 64;
  const Shape extents = {1, 1, rows, 64};
  const TensorRef q = make(extents, bf16), k = make(extents, bf16), v = make(extents, bf16), o = make(extents, bf16);
  const Plan plan = planAttention(device->target(), q, k, v, o, make({1, 1, rows}, f32), 1, {}, config);
  EXPECT_EQ(sample(plan, 100).rounds, (0 + 7) / 2.0);
  EXPECT_EQ(sample(plan, 2).rounds, (2 + 6) / 2.0);
}

// Warps of a product issue the next iteration's products before they wait for the last one's. Attention's softmax needs
// the scores at once.
TEST_F(SampleTest, Drains) {
  device = Device::open("simulator:sm_90a");
  constexpr int64_t size = 256;
  const TensorRef a = make({size, size}, bf16), b = make({size, size}, bf16), c = make({size, size}, bf16);
  MatmulConfig products;
  products.bm = products.bn = 128;
  products.bk = 64;
  products.warps = 8;
  products.stages = 4; // with fewer, a copy would overwrite operands of products that run
  const Sample matmul = sample(planMatmul(device->target(), Layout::nn, a, b, c, false, products));
  EXPECT_EQ(matmul.round.groupOperations, 2.0 * 128 * 128 * 64);
  EXPECT_EQ(matmul.round.drains, 0);
  EXPECT_EQ(matmul.round.drainedOperations, 0);

  AttentionConfig config;
  config.bm = config.bn = 64;
  const Shape extents = {1, 1, 512, 64};
  const TensorRef q = make(extents, bf16), k = make(extents, bf16), v = make(extents, bf16), o = make(extents, bf16);
  const Sample attention = sample(planAttention(device->target(), q, k, v, o, make({1, 1, 512}, f32), 1, {}, config));
  EXPECT_EQ(attention.round.groupOperations, 2 * 2.0 * 64 * 64 * 64);
  EXPECT_GE(attention.round.drains, 1);
  EXPECT_GE(attention.round.drainedOperations, attention.round.groupOperations / 2);
  // Q and the probabilities are in registers, K and V in shared memory.
  EXPECT_EQ(attention.round.wavefronts - attention.ofRound.wavefronts, 2.0 * 64 * 64 * 2 / 128);
}

// On sm_90a a matmul loads bias and residual before its main loop and uses them after it. Q of attention is used in the
// loop, and on sm_80 the residual is loaded after the loop.
TEST_F(SampleTest, Ahead) {
  constexpr int64_t size = 256, tile = 128;
  MatmulConfig products;
  products.bm = products.bn = tile;
  products.bk = 64;
  products.warps = 8;
  products.stages = 4;
  const TensorRef a = make({size, size}, bf16), b = make({size, size}, bf16), c = make({size, size}, bf16);
  const TensorRef bias = make({size}, bf16), residual = make({size, size}, bf16);
  const auto bytesAhead = [&] {
    return sample(planMatmulResidual(device->target(), Layout::nn, a, b, bias, residual, c, products)).bytesAhead;
  };
  EXPECT_EQ(bytesAhead(), 0);

  device = Device::open("simulator:sm_90a");
  EXPECT_GE(bytesAhead(), tile * tile * 2);
  EXPECT_EQ(sample(planMatmul(device->target(), Layout::nn, a, b, c, false, products)).bytesAhead, 0);
  AttentionConfig attention;
  attention.bm = attention.bn = 64;
  const Shape extents = {1, 1, 512, 64};
  const TensorRef q = make(extents, bf16), k = make(extents, bf16), v = make(extents, bf16), o = make(extents, bf16);
  const TensorRef lse = make({1, 1, 512}, f32);
  EXPECT_EQ(sample(planAttention(device->target(), q, k, v, o, lse, 1, {}, attention)).bytesAhead, 0);
}

namespace {
struct RatchetTest : SampleTest {
  StaticRow row() {
    StaticRow made;
    made.problem.set = "step";
    made.problem.name = "add 64";
    made.problem.launch.grid = 10;
    made.sample.ofProgram.barriers = 3;
    made.sample.ofProgram.loadSectors = 7;
    made.registers = 40;
    made.occupancy = {.programs = 4, .limit = "registers", .warps = 16, .maxWarps = 64};
    return made;
  }
  TemporaryFolder folder;
  const std::string file = folder.path + "/held.json";
};
} // namespace

// A row compared with an equal baseline is not worse.
TEST_F(RatchetTest, Same) {
  std::string skipped;
  accept(file, {row()});
  EXPECT_EQ(compareWith(file, {row()}, skipped), "");
  EXPECT_EQ(skipped, "");
}

// A number that is worse is reported with its kernel, its name and both values; a better one is not.
TEST_F(RatchetTest, Worse) {
  std::string skipped;
  accept(file, {row()});
  StaticRow other = row();
  other.sample.ofProgram.barriers = 4;
  other.sample.ofProgram.loadSectors = 6;
  EXPECT_EQ(compareWith(file, {other}, skipped), "\n  step add 64 f32 (): barriers was 30, is 40");
}

// More registers are worse where fewer warps fit an SM for them, and nothing else.
TEST_F(RatchetTest, Registers) {
  std::string skipped;
  accept(file, {row()});
  StaticRow other = row();
  other.registers = 48;
  EXPECT_EQ(compareWith(file, {other}, skipped), "");
  other.occupancy.warps = 12;
  EXPECT_EQ(compareWith(file, {other}, skipped),
            "\n  step add 64 f32 (): idle_warps was 48, is 52\n  step add 64 f32 (): registers was 40, is 48");
}

// Without ptxas its numbers are left out by name.
TEST_F(RatchetTest, WithoutPtxas) {
  std::string skipped;
  accept(file, {row()});
  StaticRow other = row();
  other.registers.reset();
  EXPECT_EQ(compareWith(file, {other}, skipped), "");
  EXPECT_EQ(skipped, "idle_warps, registers, spill_bytes");
}

// New and removed kernels are reported, and their numbers are not compared.
TEST_F(RatchetTest, OtherKernels) {
  std::string skipped;
  accept(file, {row()});
  StaticRow other = row();
  other.problem.name = "add 65";
  const std::string worse = compareWith(file, {other}, skipped);
  EXPECT_NE(worse.find("step add 65 f32: '" + file + "' does not know it"), std::string::npos) << worse;
  EXPECT_NE(worse.find("step add 64 f32: '" + file + "' has it, but it was not looked at"), std::string::npos) << worse;
}

// A kernel that does not compile any more is worse.
TEST_F(RatchetTest, Error) {
  std::string skipped;
  accept(file, {row()});
  StaticRow other = row();
  other.error = "it does not compile";
  EXPECT_EQ(compareWith(file, {other}, skipped), "\n  step add 64 f32: it does not compile");
  EXPECT_THROW(accept(file, {other}), kiln::Error);
}

// A file of another kind is the user's mistake.
TEST_F(RatchetTest, NoFile) {
  std::string skipped;
  EXPECT_THROW(compareWith(folder.path + "/none.json", {row()}, skipped), kiln::Error);
}

} // namespace kiln::bench::test
