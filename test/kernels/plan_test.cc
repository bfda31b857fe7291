// Plans as plain data: their launches, and their errors for arguments that do not match. Nothing is compiled or run
// here.

#include "kernels/Registry.h"
#include "kernels/adamw.h"
#include "kernels/add.h"
#include "kernels/attention.h"
#include "kernels/column_sums.h"
#include "kernels/cross_entropy.h"
#include "kernels/embedding.h"
#include "kernels/gelu.h"
#include "kernels/layernorm.h"
#include "kernels/matmul.h"
#include "kernels/softmax.h"
#include "test/expect_error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

namespace kiln {
namespace {

const Target cpu = {"x86-64-v4", CpuFacts{.vectorBits = 512, .registers = 32}};
const Target gpu = {"sm_80", GpuFacts{}};

TensorRef tensor(Shape extents, Type type = f32) { return TensorRef::dense(nullptr, type, std::move(extents)); }

/// Expects `plan` to throw exactly `text`.
template <class Plan> void expectMessage(Plan plan, const char *text) { EXPECT_EQ(errorOf(plan), text); }

// An operand of a later launch, and one whose extents are those of another, are named as the plan names them.
TEST(Plan, WrongOperandsOfLaterLaunches) {
  expectError([] { planColumnSums(cpu, tensor({4, 5}), tensor({5}, i32), false); }, {"'column_sums': ", "'out'"});
  expectError(
      [] {
        planLayerNormBackward(cpu, tensor({4, 6}), tensor({4, 5}), tensor({5}), tensor({4}), tensor({4}),
                              tensor({4, 5}), tensor({5}), tensor({5}), {});
      },
      {"'layernorm_backward': expected 'dout' of shape 4x5, but got 4x6"});
  expectError(
      [] {
        planLayerNormBackward(cpu, tensor({4}), tensor({4}), tensor({5}), tensor({4}), tensor({4}), tensor({4}),
                              tensor({5}), tensor({5}), {});
      },
      {"'layernorm_backward': ", "'x'"});
}

// A wrong extent names the plan, the operand, and both shapes.
TEST(Plan, WrongShape) {
  expectMessage([] { planMatmul(cpu, Layout::nn, tensor({4, 5}), tensor({6, 7}), tensor({4, 7})); },
                "'matmul': expected 'b' of shape 5x7, but got 6x7");
  expectMessage([] { planMatmul(cpu, Layout::nt, tensor({4, 5}), tensor({7, 6}), tensor({4, 7})); },
                "'matmul': expected 'b' of shape 7x5, but got 7x6");
  expectMessage([] { planMatmulBias(cpu, Layout::nn, tensor({4, 5}), tensor({5, 7}), tensor({4}), tensor({4, 7})); },
                "'matmul_bias': expected 'bias' of shape 7, but got 4");
  expectMessage(
      [] { planLayerNorm(cpu, tensor({4, 5}), tensor({6}), tensor({5}), tensor({4, 5}), tensor({4}), tensor({4})); },
      "'layernorm': expected 'gamma' of shape 5, but got 6");
  expectMessage([] { planGradNorm(cpu, tensor({4}), tensor({2})); },
                "'grad_norm': expected 'record' of shape 16, but got 2");
}

// Launches of one kernel and config become one launch for all of them. Launches with another config, or arguments of
// other types or ranks, are unchanged. ungrouped() restores the original launches.
TEST(Plan, GroupsWhatIsAlike) {
  const auto add = [](int64_t N, Type type, const std::string &config) {
    return Launch{&addKernel, config, N, {tensor({N}, type), tensor({N}, type), tensor({N}, type)}, 2.0 * N, "add"};
  };
  const std::vector<Launch> launches = {add(4, f32, "block=8"), add(5, f32, "block=8"), add(6, f32, "block=16"),
                                        add(7, bf16, "block=8"), add(8, f32, "block=8")};
  const std::vector<Launch> groups = grouped(launches);
  ASSERT_EQ(groups.size(), 3u);
  ASSERT_EQ(groups[0].others.size(), 2u);
  EXPECT_EQ(groups[0].others[1].grid, Grid(8));
  EXPECT_EQ(groups[0].flops, 2.0 * (4 + 5 + 8));
  EXPECT_EQ(groups[0].bytes(), 3 * 4 * (4 + 5 + 8));
  EXPECT_EQ(groups[1].config, "block=16");
  EXPECT_EQ(groups[2].args[0].ref.type, bf16);
  const Plan single = ungrouped({.launches = groups});
  std::multiset<int64_t> grids;
  double flops = 0;
  for (const Launch &launch : single.launches) {
    EXPECT_TRUE(launch.others.empty());
    EXPECT_EQ(launch.args[0].ref.extents[0], launch.grid[0]);
    EXPECT_EQ(launch.flops, 2.0 * static_cast<double>(launch.grid[0]));
    grids.insert(launch.grid[0]);
    flops += launch.flops;
  }
  EXPECT_EQ(grids, (std::multiset<int64_t>{4, 5, 6, 7, 8}));
  EXPECT_EQ(flops, 2.0 * (4 + 5 + 6 + 7 + 8));
}

// A GPU's launch has 4096 bytes of arguments: three for the grid, and a pointer, an extent and a stride for each of
// three vectors, make at most 96 for one problem.
TEST(Plan, GroupsAreAsLargeAsALaunchMayBe) {
  const Launch add = {&addKernel, "", 1, {tensor({1}), tensor({1}), tensor({1})}};
  const std::vector<Launch> groups = grouped(std::vector<Launch>(100, add));
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].others.size(), 4096 / 96 - 1);
  EXPECT_EQ(groups[0].others.size() + groups[1].others.size() + groups[2].others.size(), 97);
}

// The weights of a block, whose tiles are few for a GPU alone, are enough together: nothing is split. A CPU has a
// launch for each.
TEST(Plan, WeightsOfABlockFillAGpuTogether) {
  const int64_t C = 768, rows = 8192;
  std::vector<WeightGradient> all;
  for (const auto &[M, N] : {std::pair(C, 3 * C), {C, C}, {C, 4 * C}, {4 * C, C}})
    all.push_back({tensor({rows, M}, bf16), tensor({rows, N}, bf16), tensor({M, N}, bf16), tensor({N}, bf16)});
  const Plan plan = planWeightGradients(gpu, all);
  ASSERT_EQ(plan.launches.size(), 1u);
  EXPECT_EQ(plan.launches[0].others.size(), 3u);
  EXPECT_EQ(plan.workspaceBytes, 0);
  EXPECT_EQ(plan.launches[0].flops, 2.0 * rows * 12 * C * C);
  EXPECT_EQ(planWeightGradient(gpu, all[1].x, all[1].dy, all[1].dw, all[1].db).launches.size(), 2u);
  const Plan onCpu = planWeightGradients(cpu, all);
  EXPECT_EQ(std::ranges::count_if(onCpu.launches, [](const Launch &l) { return l.kernel == &weightGradientKernel; }),
            4);
}

// Choosing tiles takes no longer for a product of billions of tiles: `gpt2 info` plans models that exceed any machine's
// memory.
TEST(Plan, TilesOfAProductOfAnySizeAreChosenAtOnce) {
  constexpr int64_t huge = int64_t{1} << 30;
  for (const Layout layout : {Layout::nn, Layout::nt, Layout::tn}) {
    const MatmulConfig config = pickMatmul(cpu, layout, huge, huge, huge);
    EXPECT_GE(config.bm, 32);
    EXPECT_LE(config.bm, 512);
  }
}

// A sequence without positions has no tiles, but a tile still has rows.
TEST(Plan, AttentionOfAnEmptySequenceHasTilesOfSomeRows) {
  for (const Target &target : {cpu, gpu})
    for (const AttentionConfig &config : {pickAttention(target, 0, 64), pickAttentionBackward(target, 0, 64)}) {
      EXPECT_GT(config.bm, 0);
      EXPECT_GT(config.bn, 0);
    }
}

// Whole tiles of 32 × 32 accumulators, which stay in them for as long as the caches permit.
TEST(Plan, ProductsOnTilesAreDeepAndInWholeTiles) {
  const Target tiles = {"sapphirerapids",
                        CpuFacts{.vectorBits = 512, .registers = 32, .tiles = true, .l2Bytes = 2 << 20}};
  for (const Type type : {bf16, i8})
    for (const int64_t M : {100, 1019, 4096})
      for (const int64_t K : {100, 768, 50257}) {
        const MatmulConfig config = pickMatmul(tiles, Layout::nn, M, 3072, K, type);
        EXPECT_EQ(config.bm % 32, 0) << M;
        EXPECT_EQ(config.bn % 32, 0) << M;
        EXPECT_EQ(config.bk % 64, 0) << K;
        EXPECT_GE(config.bk, std::min<int64_t>(K, 512)) << K;
      }
  EXPECT_EQ(pickMatmul(tiles, Layout::nn, 1019, 3072, 50257, f16).bk,
            pickMatmul(cpu, Layout::nn, 1019, 3072, 50257).bk);
}

// Products of f32 use tf32 on a GPU and ieee on a CPU, unless the target sets one; products of bf16 are exact.
TEST(Plan, PrecisionIsTheTargetsOrTheOneAskedFor) {
  const auto picked = [](const Target &target, Type type) {
    const Precision precision = pickMatmul(target, Layout::nn, 256, 256, 256, type).precision;
    EXPECT_EQ(pickAttention(target, 64, 64, type).precision, precision);
    EXPECT_EQ(pickAttentionBackward(target, 64, 64, type).precision, precision);
    return precision;
  };
  EXPECT_EQ(picked(gpu, f32), Precision::tf32);
  EXPECT_EQ(picked(gpu, bf16), Precision::ieee);
  EXPECT_EQ(picked(cpu, f32), Precision::ieee);
  Target asked = gpu;
  for (const Precision precision : {Precision::ieee, Precision::tf32x3, Precision::bf16x3}) {
    asked.precision = precision;
    EXPECT_EQ(picked(asked, f32), precision);
  }
  const Target graphics = {.name = "gpu", .facts = GpuFacts{.architecture = 86}, .precision = Precision::bf16x3};
  EXPECT_EQ(picked(graphics, f32), Precision::ieee); // three products would take longer
  const Plan plan = planMatmul(gpu, Layout::nn, tensor({4, 5}), tensor({5, 7}), tensor({4, 7}));
  EXPECT_NE(plan.launches[0].config.find("precision=tf32"), std::string::npos);
}

// The error for a wrong rank shows the given shape.
TEST(Plan, WrongRank) {
  expectMessage([] { planMatmul(cpu, Layout::nn, tensor({4, 5, 6}), tensor({6, 7}), tensor({4, 7})); },
                "'matmul': expected 'a' of shape 4x6, but got 4x5x6");
}

// A wrong type shows the types that are right.
TEST(Plan, WrongType) {
  expectMessage([] { planMatmul(cpu, Layout::nn, tensor({4, 5}, i32), tensor({5, 7}), tensor({4, 7})); },
                "'matmul': expected 'a' of type f32 or bf16 or f16 or i8, but got i32");
  expectMessage([] { planMatmul(cpu, Layout::nn, tensor({4, 5}, bf16), tensor({5, 7}), tensor({4, 7})); },
                "'matmul': expected 'b' of type bf16, but got f32");
  expectMessage([] { planCrossEntropyLoss(cpu, tensor({4, 5}), tensor({4}), tensor({4}), 5); },
                "'cross_entropy_loss': expected 'targets' of type i32, but got f32");
}

// Numbers out of range.
TEST(Plan, WrongNumber) {
  const auto norm = [](float epsilon, int ddof, int64_t width) {
    const TensorRef x = tensor({4, width}), gamma = tensor({width});
    planLayerNorm(cpu, x, gamma, gamma, x, tensor({4}), tensor({4}), {epsilon, ddof});
  };
  expectMessage([&] { norm(-1, 0, 5); }, "'layernorm': expected 'epsilon' to be at least 0, but got -1.000000");
  expectMessage([&] { norm(1, 1, 1); },
                "'layernorm': expected 'ddof' to be 0 or 1 and below the width, but got 1 with a width of 1");
  expectMessage([&] { norm(1, 2, 5); },
                "'layernorm': expected 'ddof' to be 0 or 1 and below the width, but got 2 with a width of 5");
  expectMessage(
      [] {
        planCrossEntropyLoss(cpu, tensor({4, 5}), tensor({4}, i32), tensor({4}), 5, ignoreIndex, {.smoothing = 1.5f});
      },
      "'cross_entropy_loss': expected 'smoothing' to be from 0 to 1, but got 1.500000");
  expectMessage([] { planCrossEntropyLoss(cpu, tensor({4, 5}), tensor({4}, i32), tensor({4}), 6); },
                "'cross_entropy_loss': expected a vocabulary of 1 to 5 columns, but got 6");
  expectMessage([] { makeStepRecord({}, {.step = 0}); }, "'adamw': expected 'step' to be at least 1, but got 0");
  expectMessage([] { planPositionGradient(cpu, tensor({7, 5}), tensor({3, 5}), 3, false); },
                "'position_gradient': expected 'dout' to have whole sequences of 3 rows, but got 7 rows");
  expectMessage(
      [] {
        planLayerNormBackward(cpu, tensor({4, 5}), tensor({4, 5}), tensor({5}), tensor({4}), tensor({4}),
                              tensor({4, 5}), tensor({5}), tensor({5}), {}, {},
                              LayerNormBackwardConfig{.block = 2, .rows = 5});
      },
      "'layernorm_backward': expected 'rows' to be a multiple of 'block', but got 5 and 2");
  expectMessage(
      [] {
        planWeightGradient(cpu, tensor({9, 4}), tensor({9, 5}), tensor({4, 5}), {}, false,
                           MatmulConfig{.bk = 4, .split = 6});
      },
      "'weight_gradient': expected 'split' to be a multiple of 'bk', but got 6 and 4");
}

// Scores are compared before they are scaled, which only a positive scale allows.
TEST(Plan, AttentionsScaleIsPositive) {
  const TensorRef heads = tensor({2, 3, 100, 64});
  expectMessage([&] { planAttention(cpu, heads, heads, heads, heads, tensor({2, 3, 100}), 0); },
                "'attention': expected 'scale' to be above 0, but got 0.000000");
}

// Errors about attention's operands.
TEST(Plan, AttentionsOperandsFit) {
  const auto plan = [](int64_t Hk, const AttentionMask &mask) {
    const TensorRef q = tensor({2, 4, 10, 64}), k = tensor({2, Hk, 12, 64});
    return planAttention(cpu, q, k, k, q, tensor({2, 4, 10}), 1, mask);
  };
  expectMessage([&] { plan(3, {}); },
                "'attention': expected the number of heads of 'k' to divide that of 'q', but got 3 and 4");
  expectMessage([&] { plan(2, {.ranges = tensor({2, 12, 2}, i32)}); },
                "'attention': expected 'ranges' of shape 2x10x2, but got 2x12x2");
  expectMessage([&] { plan(2, {.ranges = tensor({2, 10, 2})}); },
                "'attention': expected 'ranges' of type i32, but got f32");
  expectMessage([&] { plan(2, {.mask = tensor({2, 3, 10, 12}, i8)}); },
                "'attention': expected 'mask' of shape 2x4x10x12, but got 2x3x10x12");
  expectMessage([&] { plan(2, {.mask = tensor({1, 4, 10, 12}, i32)}); },
                "'attention': expected 'mask' of type i8, but got i32");
  expectMessage([&] { plan(2, {.dropout = Dropout{{0.1}, tensor({2}, i64), 10, 11}}); },
                "'attention': expected at most 11 keys, the longest sequence that 'dropout' allows, but got 12");
  const TensorRef heads = tensor({2, 4, 10, 64}), lse = tensor({2, 4, 10}), ranges = tensor({2, 10, 2}, i32);
  const AttentionSaved saved{heads, heads, heads, heads, lse, heads};
  expectMessage(
      [&] { planAttentionBackward(cpu, saved, heads, heads, heads, 1, {.queryRanges = tensor({2, 12, 2}, i32)}); },
      "'attention_backward': expected 'query_ranges' of shape 2x10x2, but got 2x12x2");
  expectMessage([&] { planAttentionBackward(cpu, saved, heads, heads, heads, 1, {.ranges = ranges}); },
                "'attention_backward': 'ranges' and 'query_ranges' require each other, but got only one of them");
  expectMessage([&] { planAttentionBackward(cpu, saved, heads, heads, heads, -1); },
                "'attention_backward': expected 'scale' to be above 0, but got -1.000000");
}

// The split of a long sum is a property of the shape: a machine with more threads adds in the same order.
TEST(Plan, SplitsDoNotDependOnThreads) {
  Target many = cpu;
  std::get<CpuFacts>(many.facts).cores = 64;
  for (const int64_t K : {100, 4096, 9000}) {
    auto text = [&](const Target &target) {
      const Plan plan = planWeightGradient(target, tensor({K, 128}), tensor({K, 256}), tensor({128, 256}), {});
      const std::string &config = plan.launches[0].config;
      const size_t split = config.find("split="), bk = config.find("bk=");
      return config.substr(split, config.find(',', split) - split) + " " +
             config.substr(bk, config.find(',', bk) - bk) + " " + std::to_string(plan.launches[0].grid[2]);
    };
    EXPECT_EQ(text(cpu), text(many));
  }
}

// Every operator has a config for a GPU: at most as many rows a program as its threads share, and tiles that fit.
TEST(Plan, GpusHaveChoicesOfTheirOwn) {
  EXPECT_EQ(pickLayerNorm(gpu, 768, bf16).rows, 4); // a row for every warp
  EXPECT_EQ(pickLayerNorm(gpu, 64, bf16).rows, 16); // 16 bytes of bf16 for every lane
  EXPECT_EQ(pickLayerNorm(gpu, 4096, bf16).rows, 1);
  EXPECT_EQ(pickLayerNormBackward(gpu, 100, 768, bf16).rows, 8);
  EXPECT_EQ(pickLayerNormBackward(gpu, 8192, 768, bf16).rows, 28); // 293 programs, three for every SM at most
  EXPECT_EQ(pickLayerNormBackward(gpu, 8192, 1600, bf16).block, 2);
  EXPECT_EQ(pickSoftmax(gpu, 768).rows, 4);
  EXPECT_EQ(pickEmbedding(gpu).rows, 1);
  EXPECT_EQ(pickCrossEntropy(gpu, 50304, bf16).warps, 32);  // a program an SM: 132 rows, 13 MB, on 132
  EXPECT_EQ(pickCrossEntropy(gpu, 4096, bf16).block, 2048); // 32 bytes a thread
  EXPECT_EQ(pickCrossEntropy(gpu, 4096, f32).block, 1024);
  EXPECT_EQ(pickCrossEntropy(gpu, 100, f32).block, 128);
  EXPECT_EQ(pickAdamW(gpu, 1 << 20).block, 1024);
  EXPECT_EQ(pickGelu(gpu, 108 * 200).block, 256); // a block for every SM
  EXPECT_GE(pickMatmul(gpu, Layout::nn, 4096, 4096, 4096, bf16).bm, 128);
  EXPECT_LE(pickMatmul(gpu, Layout::nn, 512, 512, 4096, bf16).bm, 64);
  EXPECT_EQ(pickAttention(gpu, 1024, 64).bm, 128);
  EXPECT_EQ(pickAttention(gpu, 1024, 64, bf16).warps, 4);
  EXPECT_EQ(pickAttention(gpu, 1024, 64, f32).warps, 8);
  EXPECT_EQ(pickAttention(gpu, 1024, 128, bf16).warps, 8);
  EXPECT_EQ(pickAttention(gpu, 20, 64).bm, 32);
  EXPECT_EQ(pickAttention(gpu, 20, 64).warps, 2);
  Target small = gpu;
  std::get<GpuFacts>(small.facts).ctaSharedBytes = 48 << 10;
  EXPECT_EQ(pickAttention(small, 1024, 64).bm, 64);
  EXPECT_EQ(pickAttentionBackward(small, 1024, 64).bm, 16);
}

/// A matrix product of a step of GPT-2, with its sums over K.
struct GpuProduct {
  int64_t M, N, K;
  bool isWeight; // a weight's gradient, whose K may be split
};

/// Of the width C over `tokens` tokens: forward, gradients of inputs, gradients of weights.
std::vector<GpuProduct> productsOfGpt2(int64_t tokens, int64_t C) {
  std::vector<GpuProduct> products;
  for (const auto &[in, out] : {std::pair(C, 3 * C), {C, C}, {C, 4 * C}, {4 * C, C}, {C, int64_t{50304}}}) {
    products.push_back({tokens, out, in, false});
    products.push_back({tokens, in, out, false});
    products.push_back({in, out, tokens, true});
  }
  return products;
}

// The last wave of tiles uses most SMs, for every product of GPT-2 on GPUs of 108 and of 132 SMs. A short sum of a
// weight's gradient may leave more idle: writing and adding its parts would take longer.
TEST(Plan, TilesOfGpt2sProductsFillTheWavesOfAGpu) {
  for (const auto &[sms, least] : {std::pair(108, 0.90), {132, 0.93}})
    for (const int64_t tokens : {8192, 65536})
      for (const auto &[M, N, K, isWeight] : productsOfGpt2(tokens, 768)) {
        const Target target = {"gpu", GpuFacts{.sms = sms}};
        const Plan plan =
            isWeight ? planWeightGradient(target, tensor({K, M}, bf16), tensor({K, N}, bf16), tensor({M, N}, bf16), {})
                     : planMatmul(target, Layout::nn, tensor({M, K}, bf16), tensor({K, N}, bf16), tensor({M, N}, bf16));
        const auto &grid = plan.launches[0].grid;
        const int64_t tiles = grid[0] * grid[1] * grid[2], waves = (tiles + sms - 1) / sms;
        EXPECT_GE(static_cast<double>(tiles) / static_cast<double>(waves * sms),
                  isWeight && tokens == 8192 && sms == 132 ? 0.81 : least)
            << M << " × " << N << " × " << K << ": " << tiles << " tiles, " << plan.launches[0].config;
      }
}

/// Rows and columns of tiles that the first `count` programs of a grid of bands work on.
std::pair<int64_t, int64_t> reachOf(const Grid &grid, int64_t count) {
  std::set<int64_t> rows, columns;
  for (int64_t i = 0; i < std::min(count, grid[0] * grid[1] * grid[2]); ++i) {
    rows.insert(i / (grid[0] * grid[1]) * grid[0] + i % grid[0]);
    columns.insert(i / grid[0] % grid[1]);
  }
  return {static_cast<int64_t>(rows.size()), static_cast<int64_t>(columns.size())};
}

// Programs that run at once on a GPU read little more than the fewest rows of A and columns of B. They never read more
// than the plain order of row tiles would. All tiles are in the grid.
TEST(Plan, ProgramsThatRunAtOnceReadFewOperands) {
  for (const auto &[M, N, K, isWeight] : productsOfGpt2(65536, 768)) {
    if (isWeight)
      continue;
    const Target target = {"gpu", GpuFacts{}};
    const Plan plan = planMatmul(target, Layout::nn, tensor({M, K}, bf16), tensor({K, N}, bf16), tensor({M, N}, bf16));
    const MatmulConfig c = pickMatmul(target, Layout::nn, M, N, K, bf16);
    const Grid grid = plan.launches[0].grid, inTurn = programs(cdiv(M, c.bm), cdiv(N, c.bn));
    EXPECT_EQ(grid[0] * grid[1] * grid[2], inTurn[0] * inTurn[1]);
    const int64_t wave = int64_t{108} * (c.warps <= 4 ? 2 : 1);
    const auto bytes = [&, &c = c](const Grid &of) {
      const auto [rows, columns] = reachOf(of, wave);
      return static_cast<double>(rows * c.bm + columns * c.bn);
    };
    const double fewest = 2 * std::sqrt(static_cast<double>(wave * c.bm * c.bn));
    EXPECT_LE(bytes(grid), bytes(inTurn));
    if (inTurn[1] * 16 >= wave) {
      EXPECT_LE(bytes(grid), 1.3 * fewest) << M << " × " << N << ": " << grid[0] << " rows of tiles a band";
    }
  }
}

// The chosen stages fit the shared memory of every architecture, and the accumulators fit the registers and the shared
// memory through which they are stored. If tensor cores read two-byte operands from shared memory, registers hold none.
TEST(Plan, TilesOfAProductFitEveryGpu) {
  std::vector<GpuProduct> products = productsOfGpt2(4096, 768);
  for (const int64_t extent : {9, 100, 1000, 10000}) // fewer rows have no tiles
    products.push_back({extent, extent, extent, false});
  for (const auto &[architecture, shared] : {std::pair(80, 163), {86, 99}, {90, 227}, {120, 99}})
    for (const Type type : {f32, bf16, i8})
      for (const Epilogue epilogue : {Epilogue::light, Epilogue::accumulate, Epilogue::dropout})
        for (const GpuProduct &e : products) {
          const GpuFacts facts{
              .architecture = architecture, .ctaSharedBytes = shared << 10, .smSharedBytes = (shared + 1) << 10};
          const Target target = {.name = "gpu", .facts = facts, .precision = Precision::tf32};
          const MatmulConfig c = pickMatmul(target, Layout::nn, e.M, e.N, e.K, type, epilogue);
          EXPECT_GE(c.stages, 2);
          EXPECT_LE((c.bm + c.bn) * c.bk * bytesOf(type) * c.stages, shared << 10);
          EXPECT_LE(c.bm * c.bn * 4, shared << 10);
          const bool isFromShared = architecture == 90 && type == bf16;
          EXPECT_LE(c.bm * c.bn / (32 * c.warps), epilogue == Epilogue::light                  ? 128
                                                  : isFromShared && epilogue < Epilogue::heavy ? 96
                                                                                               : 64);
        }
}

// An activation of bf16 leaves registers for tiles of 256 columns where tensor cores read operands from shared memory.
// One of f16, or one that is added to a residual, does not (`kiln-bench ptxas` shows spills).
TEST(Plan, ActivationsHaveTheTilesThatRegistersAllow) {
  const GpuFacts facts{
      .architecture = 90, .sms = 132, .ctaSharedBytes = 227 << 10, .smSharedBytes = 228 << 10, .l2Bytes = 50 << 20};
  const Target target = {.name = "gpu", .facts = facts};
  const auto pick = [&](Type type, Epilogue epilogue) {
    return pickMatmul(target, Layout::nn, 8192, 3072, 768, type, epilogue);
  };
  const MatmulConfig wide = pick(bf16, Epilogue::activated);
  EXPECT_EQ(std::tuple(wide.bm, wide.bn, wide.warps), std::tuple(128, 256, 8));
  EXPECT_LE(pick(f16, Epilogue::activated).bn, 128);
  const MatmulConfig added = pick(bf16, Epilogue::activatedAndAdded);
  EXPECT_LE(added.bm * added.bn / (32 * added.warps), 96);
}

// Products of warpgroups with many tiles for each SM have persistent programs, one for each SM, unless another matrix
// is read, results are wide, or the config must not depend on the number of rows.
TEST(Plan, ProductsOfManyTilesHavePersistentPrograms) {
  const GpuFacts facts{
      .architecture = 90, .sms = 132, .ctaSharedBytes = 227 << 10, .smSharedBytes = 228 << 10, .l2Bytes = 50 << 20};
  const auto isPersistent = [&](int64_t rows, Type stored, bool accumulate, bool elastic) {
    const Target target = {.name = "gpu", .facts = facts, .elastic = elastic};
    const Plan plan = planMatmul(target, Layout::nn, tensor({rows, 768}, bf16), tensor({768, 2304}, bf16),
                                 tensor({rows, 2304}, stored), accumulate);
    const Grid grid = plan.launches[0].grid;
    const bool isOneForEachSm = grid == programs(132);
    EXPECT_EQ(plan.launches[0].config.find("group_m=0") == std::string::npos, isOneForEachSm);
    return isOneForEachSm;
  };
  EXPECT_TRUE(isPersistent(8192, bf16, false, false));
  EXPECT_FALSE(isPersistent(2048, bf16, false, false)) << "two tiles for each SM";
  EXPECT_FALSE(isPersistent(8192, bf16, true, false)) << "C is read";
  EXPECT_FALSE(isPersistent(8192, f32, false, false)) << "results do not fit in the empty slots";
  EXPECT_FALSE(isPersistent(8192, bf16, false, true)) << "in dynamic-shape mode";
  EXPECT_FALSE(isPersistent(int64_t{1} << 40, bf16, false, false)) << "more tiles than 32 bits number";
}

// Exact products of f32 use registers for their operands, which accumulators then lack. No size overflows the cost
// model.
TEST(Plan, GpusPickForExactAndForHugeProducts) {
  const Target exact = {.name = "gpu", .facts = GpuFacts{}, .precision = Precision::ieee};
  const MatmulConfig c = pickMatmul(exact, Layout::nn, 8192, 2304, 768);
  EXPECT_LE(c.bm * c.bn / (32 * c.warps), 64);
  constexpr int64_t huge = int64_t{1} << 30;
  EXPECT_EQ(
      planWeightGradient(gpu, tensor({huge, huge}, bf16), tensor({huge, huge}, bf16), tensor({huge, huge}, bf16), {})
          .launches.size(),
      1u);
}

// Attention's backward pass fills a CPU with whole heads, and a GPU with blocks of rows, whose only workspace is delta.
TEST(Plan, GpusSplitHeadsIntoBlocks) {
  const TensorRef heads = tensor({2, 3, 100, 64}, bf16), lse = tensor({2, 3, 100});
  const AttentionSaved saved{heads, heads, heads, heads, lse, heads};
  EXPECT_EQ(planAttentionBackward(cpu, saved, heads, heads, heads, 1).launches.size(), 1u);
  const Plan plan = planAttentionBackward(gpu, saved, heads, heads, heads, 1);
  ASSERT_EQ(plan.launches.size(), 2u);
  EXPECT_EQ(plan.launches[0].grid, programs(3, 2, 2));
  EXPECT_EQ(plan.launches[1].grid, programs(2, 3, 2));
  EXPECT_EQ(plan.workspaceBytes, lse.bytes());
}

// Blocks of attention are smaller on consumer GPUs, with tf32x3, and if a mask or dropout takes registers. Blocks that
// the caller sets are kept.
TEST(Plan, BlocksOfAttentionFitTheRegisters) {
  const TensorRef heads = tensor({2, 3, 256, 64}, bf16), lse = tensor({2, 3, 256});
  const AttentionSaved saved{heads, heads, heads, heads, lse, heads};
  const Target graphics = {"sm_86", GpuFacts{.architecture = 86}};
  const auto blocksOf = [&](const Target &target, const std::optional<AttentionConfig> &config,
                            const AttentionMask &mask = {}) {
    std::string blocks = std::to_string(pickAttention(target, 256, 64, bf16).bn);
    for (const Launch &launch : planAttentionBackward(target, saved, heads, heads, heads, 1, mask, config).launches)
      blocks += " " + launch.config.substr(0, launch.config.find(",causal"));
    return blocks;
  };
  const AttentionMask masked = {.causal = false, .mask = tensor({1, 1, 256, 256}, i8)},
                      dropping = {.dropout = Dropout{{0.1}, tensor({2}, i64), 256, 256}};
  EXPECT_EQ(blocksOf(gpu, {}), "64 bm=64,bn=64 bm=64,bn=64");
  EXPECT_EQ(blocksOf(graphics, {}), "32 bm=64,bn=32 bm=32,bn=64");
  EXPECT_EQ(blocksOf(graphics, AttentionConfig{.bm = 64, .bn = 64, .whole = false}), "32 bm=64,bn=64 bm=64,bn=64");
  EXPECT_EQ(blocksOf(gpu, {}, masked), "64 bm=64,bn=32 bm=32,bn=64");
  EXPECT_EQ(blocksOf(gpu, {}, dropping), "64 bm=64,bn=32 bm=16,bn=64");
  EXPECT_EQ(blocksOf(gpu, AttentionConfig{.bm = 64, .bn = 64, .whole = false}, dropping), "64 bm=64,bn=64 bm=64,bn=64");
  const auto keysOf = [&](const AttentionMask &mask) {
    const std::string config = planAttention(gpu, heads, heads, heads, heads, lse, 1, mask).launches[0].config;
    return config.substr(0, config.find(",causal"));
  };
  EXPECT_EQ(keysOf(masked), "bm=128,bn=32");
  EXPECT_EQ(keysOf(dropping), "bm=128,bn=64");
  Target split = gpu;
  split.precision = Precision::tf32x3;
  EXPECT_EQ(pickAttention(split, 256, 64).bn, 32);
  EXPECT_EQ(pickAttentionBackward(split, 256, 64).bn, 32);
}

// Blocks of all heads are interleaved if their keys and values together fit the L2 cache.
TEST(Plan, GpusTakeTheLongestBlocksFirst) {
  const auto gridOf = [&](const Target &target, int64_t B, bool causal) {
    const TensorRef heads = tensor({B, 12, 1024, 64}, bf16), lse = tensor({B, 12, 1024});
    return planAttention(target, heads, heads, heads, heads, lse, 1, {.causal = causal}).launches[0].grid;
  };
  EXPECT_EQ(gridOf(gpu, 8, true), programs(12, 8, 8)); // 24 of 40 MiB
  EXPECT_EQ(gridOf(gpu, 8, false), programs(8, 12, 8));
  EXPECT_EQ(gridOf(gpu, 16, true), programs(8, 12, 16));
  EXPECT_EQ(gridOf(cpu, 8, true)[1], 12);
}

// K is split if a product has few tiles and long sums, and only then.
TEST(Plan, SplitsOnlyLongSumsOfFewTiles) {
  auto parts = [](int64_t M, int64_t N, int64_t K) {
    return planWeightGradient(cpu, tensor({K, M}), tensor({K, N}), tensor({M, N}), {}).launches[0].grid[2];
  };
  EXPECT_EQ(parts(768, 3072, 8192), 1);
  EXPECT_EQ(parts(64, 64, 256), 1);
  EXPECT_GT(parts(64, 64, 8192), 1);
}

// Every kernel is in the registry once.
TEST(Registry, HasEveryKernelOnce) {
  std::set<std::string> names;
  for (const Kernel *kernel : kernels())
    EXPECT_TRUE(names.insert(kernel->name).second) << kernel->name;
}

} // namespace
} // namespace kiln
