// Chapter 5: a matrix product. A program computes one tile of C.

#include <kiln/dialect/dsl/Kernel.h>

using namespace kiln;

struct MatmulConfig {
  int bm = 64, bn = 64, bk = 32; // tile of C (BM, BN), and the step along K
};

/// C = A · B with f32 accumulation.
static void matmul(View a, View b, View c, MatmulConfig cfg) {
  const int64_t BM = cfg.bm, BN = cfg.bn, BK = cfg.bk;
  Tile m = program_id(0) * BM, n = program_id(1) * BN;
  Tile acc = zeros(f32, {BM, BN}); // (BM, BN)
  for (Tile k : range(0, a.dim(1), BK)) {
    Tile left = load(a, {m, k}, {BM, BK});  // (BM, BK)
    Tile right = load(b, {k, n}, {BK, BN}); // (BK, BN)
    acc = dot(left, right, acc);            // (BM, BN)
  }
  store(c, {m, n}, cast(acc, c.type()));
}

const Kernel matmulKernel =
    kernel("matmul", matmul, {"a (M, K)", "b (K, N)", "c (M, N), a · b"},
           {field("bm", &MatmulConfig::bm, "rows of a tile of C"),
            field("bn", &MatmulConfig::bn, "columns of a tile of C"), field("bk", &MatmulConfig::bk, "step along K")});
