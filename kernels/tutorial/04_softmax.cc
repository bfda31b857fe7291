// Chapter 4: softmax over rows. Each row is read once.

#include <kiln/dialect/dsl/Kernel.h>

using namespace kiln;

struct SoftmaxConfig {
  int rows = 4; // rows of a program
};

/// out[n] = softmax(x[n]). A row is one tile of its own width, so nothing is padded inside it.
static void rowSoftmax(View x, View out, SoftmaxConfig cfg) {
  const int64_t BN = cfg.rows, C = x.extent(1); // compiled for each C
  Tile n = program_id() * BN;

  Tile row = cast(load(x, {n, 0}, {BN, C}), f32); // (BN, C)
  Tile top = reduce_max(row, -1, keep);           // (BN, 1)
  Tile e = exp(row - top);                        // (BN, C)  at most 1: no overflow
  Tile p = e / sum(e, -1, keep);                  // (BN, C)
  store(out, {n, 0}, cast(p, out.type()));
}

const Kernel rowSoftmaxKernel = kernel("row_softmax", rowSoftmax, {"x (N, C)", "out (N, C)"},
                                       {field("rows", &SoftmaxConfig::rows, "rows of a program")});
