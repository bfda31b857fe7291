// Chapter 6: the matrix product of chapter 5, with the fields that decide its speed.

#include <kiln/dialect/dsl/Plan.h>

using namespace kiln;

struct FastConfig {
  int bm = 64, bn = 64, bk = 32; // tile of C (BM, BN), and the step along K
  int group = 8;                 // row tiles that run together: the first extent of the grid
  int warps = 4;                 // warps of a program, on a GPU
  int stages = 3;                // stages of the software pipeline, on a GPU
};

/// C = A · B with f32 accumulation. The grid is (group, column tiles, groups of row tiles).
static void fastMatmul(View a, View b, View c, FastConfig cfg) {
  const int64_t BM = cfg.bm, BN = cfg.bn, BK = cfg.bk;
  Tile m = (program_id(2) * cfg.group + program_id(0)) * BM, n = program_id(1) * BN;
  Tile acc = zeros(f32, {BM, BN}); // (BM, BN)
  for (Tile k : range(0, a.dim(1), BK)) {
    Tile left = load(a, {m, k}, {BM, BK});  // (BM, BK)
    Tile right = load(b, {k, n}, {BK, BN}); // (BK, BN)
    acc = dot(left, right, acc);            // (BM, BN)
  }
  store(c, {m, n}, cast(acc, c.type()));
}

/// Whether a config is worth trying. On a CPU the fields of GPUs keep their defaults. On a GPU a thread has at most 128
/// accumulators, and a step is short, so that three stages of operands fit shared memory.
static bool isCandidate(const FastConfig &cfg, const Target &target) {
  const FastConfig base;
  return target.visit([&](const CpuFacts &) { return cfg.warps == base.warps && cfg.stages == base.stages; },
                      [&](const GpuFacts &) { return cfg.bm * cfg.bn <= 128 * 32 * cfg.warps && cfg.bk <= 64; });
}

const Kernel fastMatmulKernel =
    kernel("fast_matmul", fastMatmul, {"a (M, K)", "b (K, N)", "c (M, N), a · b"},
           {field("bm", &FastConfig::bm, "rows of a tile of C").among({64, 128}),
            field("bn", &FastConfig::bn, "columns of a tile of C").among({64, 128}),
            field("bk", &FastConfig::bk, "step along K").among({64, 256}).changing(),
            field("group", &FastConfig::group, "row tiles that run together"),
            field("warps", &FastConfig::warps, "warps of a program").among({4, 8}),
            field("stages", &FastConfig::stages, "stages of the software pipeline").among({2, 3})},
           isCandidate);
