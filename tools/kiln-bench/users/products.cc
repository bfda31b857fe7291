// Users' fused GEMMs: SwiGLU, 8-bit weights scaled in the loop, an LSTM step, a persistent GEMM.

#include "tools/kiln-bench/users/users.h"

namespace kiln::bench {

static Tile sigmoid(const Tile &x) { return divide(1.0, 1.0 + exp(-x, Accuracy::fast), Accuracy::fast); }

static void swiglu(View x, View gate, View up, View y, ProductConfig cfg) {
  Tile m = program_id(0) * cfg.bm, n = program_id(1) * cfg.bn;
  Tile g = zeros(f32, {cfg.bm, cfg.bn}), u = zeros(f32, {cfg.bm, cfg.bn}); // (BM, BN)
  for (Tile k : range(0, x.dim(1), cfg.bk)) {
    Tile v = load(x, {m, k}, {cfg.bm, cfg.bk});
    g = dot(v, load(gate, {k, n}, {cfg.bk, cfg.bn}), g);
    u = dot(v, load(up, {k, n}, {cfg.bk, cfg.bn}), u);
  }
  store(y, {m, n}, cast(g * sigmoid(g) * u, y.type()));
}
const Kernel swigluKernel =
    kernel("swiglu", swiglu, {"x (M, K)", "gate (K, N)", "up (K, N)", "y (M, N)"}, productFields());

static void scaledProduct(View x, View w, View scales, View y, ProductConfig cfg) {
  Tile m = program_id(0) * cfg.bm, n = program_id(1) * cfg.bn;
  Tile acc = zeros(f32, {cfg.bm, cfg.bn}); // (BM, BN)
  for (Tile k : range(0, x.dim(1), cfg.bk)) {
    Tile scale = load(scales, {k / cfg.bk, n}, {cfg.bn});                // of these BK rows
    Tile weights = cast(load(w, {k, n}, {cfg.bk, cfg.bn}), f32) * scale; // (BK, BN)
    acc = dot(load(x, {m, k}, {cfg.bm, cfg.bk}), cast(weights, x.type()), acc);
  }
  store(y, {m, n}, cast(acc, y.type()));
}
const Kernel scaledProductKernel =
    kernel("scaled_product", scaledProduct, {"x (M, K)", "w (K, N) i8", "scales (K / BK, N) f32, of w", "y (M, N)"},
           productFields());

static void lstmStep(View x, View h, View cell, View wx, View wh, View bias, View hNext, View cellNext,
                     ProductConfig cfg) {
  Tile m = program_id(0) * cfg.bm, n = program_id(1) * cfg.bn;
  Tile gates[4]; // input, forget, candidate, output
  for (int g = 0; g < 4; ++g)
    gates[g] = broadcast(load(bias, {g, n}, {1, cfg.bn}), {cfg.bm, cfg.bn}); // (BM, BN)
  const auto add = [&](View from, View w) {
    for (Tile k : range(0, from.dim(1), cfg.bk)) {
      Tile v = load(from, {m, k}, {cfg.bm, cfg.bk});
      for (int g = 0; g < 4; ++g)
        gates[g] = dot(v, load(w, {g, k, n}, {cfg.bk, cfg.bn}), gates[g]);
    }
  };
  add(x, wx);
  add(h, wh);
  Tile now = sigmoid(gates[1]) * load(cell, {m, n}, {cfg.bm, cfg.bn}) +
             sigmoid(gates[0]) * tanh(gates[2], Accuracy::fast); // (BM, BN)
  store(cellNext, {m, n}, now);
  store(hNext, {m, n}, cast(sigmoid(gates[3]) * tanh(now, Accuracy::fast), hNext.type()));
}
const Kernel lstmStepKernel = kernel("lstm_step", lstmStep,
                                     {"x (M, X)", "h (M, H)", "cell (M, H) f32", "wx (4, X, H)", "wh (4, H, H)",
                                      "bias (4, H) f32", "hNext (M, H)", "cellNext (M, H) f32"},
                                     productFields());

static void persistentProduct(View a, View b, View c, ProductConfig cfg) {
  Tile columns = (c.dim(1) + cfg.bn - 1) / cfg.bn, tiles = (c.dim(0) + cfg.bm - 1) / cfg.bm * columns;
  for (Tile tile : range(program_id(0), tiles, num_programs(0))) {
    Tile m = tile / columns * cfg.bm, n = tile % columns * cfg.bn;
    Tile acc = zeros(f32, {cfg.bm, cfg.bn}); // (BM, BN)
    for (Tile k : range(0, a.dim(1), cfg.bk))
      acc = dot(load(a, {m, k}, {cfg.bm, cfg.bk}), load(b, {k, n}, {cfg.bk, cfg.bn}), acc);
    store(c, {m, n}, cast(acc, c.type()));
  }
}
const Kernel persistentProductKernel =
    kernel("persistent_product", persistentProduct, {"a (M, K)", "b (K, N)", "c (M, N)"}, productFields());

} // namespace kiln::bench
