// Chapter 3: a loop in C++, which tracing unrolls, inside a loop in the IR.

#include <kiln/dialect/dsl/Kernel.h>

using namespace kiln;

struct SeriesConfig {
  int bm = 4, bn = 32; // rows and columns of a tile
};

/// x + x²/2 + x³/6, by Horner's rule.
static Tile series(Tile x) {
  Tile y = full(f32, x.shape(), 1.0 / 6);
  for (const double coefficient : {1.0 / 2, 1.0}) // a loop in C++: runs while tracing
    y = y * x + coefficient;
  return y * x;
}

/// out[m] = Σ_n series(x[m, n]).
static void seriesSums(View x, View out, SeriesConfig cfg) {
  const int64_t BM = cfg.bm, BN = cfg.bn;
  Tile m = program_id() * BM;
  Tile acc = zeros(f32, {BM});              // (BM)
  for (Tile n : range(0, x.dim(1), BN)) {   // a loop in the IR: runs in the kernel
    Tile block = load(x, {m, n}, {BM, BN}); // (BM, BN)  out of bounds: 0, and series(0) = 0
    acc += sum(series(block), -1);          // (BM)
  }
  store(out, {m}, acc);
}

const Kernel seriesSumsKernel =
    kernel("series_sums", seriesSums, {"x (M, N)", "out (M)"},
           {field("bm", &SeriesConfig::bm, "rows of a tile"), field("bn", &SeriesConfig::bn, "columns of a tile")});
