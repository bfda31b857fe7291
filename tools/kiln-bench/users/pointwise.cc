// Users' elementwise kernels: reproducible dropout, rotary embeddings, a stencil, a short convolution along a sequence.

#include "tools/kiln-bench/users/users.h"

namespace kiln::bench {

static void dropout(View x, View y, Tile seed, Tile rate, BlockConfig cfg) {
  Tile n = program_id(0) * cfg.block;
  Tile stays = random(seed, n + iota(cfg.block, i64)) >= rate; // (block), reproducible
  Tile v = cast(load(x, {n}, {cfg.block}), f32);
  store(y, {n}, cast(where(stays, v * divide(1.0, 1.0 - rate, Accuracy::fast), 0.0), y.type()));
}
const Kernel dropoutKernel =
    kernel("dropout", dropout, {"x (N)", "y (N)", "seed", "rate of elements that are dropped"}, blockFields());

static void rope(View x, View cosines, View sines, View y, RopeConfig cfg) {
  const int64_t half = x.extent(3) / 2;
  Tile t = program_id(0) * cfg.bt, h = program_id(1), b = program_id(2);
  Tile c = load(cosines, {t, 0}, {cfg.bt, half}), s = load(sines, {t, 0}, {cfg.bt, half}); // (BT, D / 2)
  Tile left = cast(load(x, {b, h, t, 0}, {cfg.bt, half}), f32),
       right = cast(load(x, {b, h, t, half}, {cfg.bt, half}), f32);
  store(y, {b, h, t, 0}, cast(fma(left, c, -(right * s)), y.type()));
  store(y, {b, h, t, half}, cast(fma(right, c, left * s), y.type()));
}
const Kernel ropeKernel = kernel(
    "rope", rope, {"x (B, H, T, D)", "cosines (T, D / 2) f32", "sines (T, D / 2) f32", "y (B, H, T, D)"},
    {field("bt", &RopeConfig::bt, "positions of a program"), field("warps", &RopeConfig::warps, "warps of a program")});

static void stencil(View x, View y, Tile centre, Tile side, StencilConfig cfg) {
  Tile i = program_id(0) * cfg.bm, j = program_id(1) * cfg.bn;
  const auto at = [&](int down, int right) { return load(x, {i + down, j + right}, {cfg.bm, cfg.bn}); };
  store(y, {i, j}, fma(at(-1, 0) + at(1, 0) + at(0, -1) + at(0, 1), side, at(0, 0) * centre));
}
const Kernel stencilKernel = kernel("stencil", stencil, {"x (M, N)", "y (M, N)", "centre of the factors", "side"},
                                    {field("bm", &StencilConfig::bm, "rows of a program"),
                                     field("bn", &StencilConfig::bn, "columns of a program"),
                                     field("warps", &StencilConfig::warps, "warps of a program")});

static void convolve(View x, View w, View bias, View y, ConvolveConfig cfg) {
  constexpr int taps = 4;
  Tile d = program_id(0) * cfg.bd, t = program_id(1) * cfg.bt, b = program_id(2);
  Tile acc = broadcast(cast(load(bias, {d}, {cfg.bd}), f32), {cfg.bt, cfg.bd}); // (BT, BD)
  for (int i = 0; i < taps; ++i) {
    Tile v = cast(load(x, {b, t + (i - taps + 1), d}, {cfg.bt, cfg.bd}), f32);
    acc = fma(v, broadcast(cast(load(w, {i, d}, {cfg.bd}), f32), {cfg.bt, cfg.bd}), acc);
  }
  store(y, {b, t, d}, cast(divide(acc, 1.0 + exp(-acc, Accuracy::fast), Accuracy::fast), y.type()));
}
const Kernel convolveKernel = kernel("convolve", convolve, {"x (B, T, D)", "w (4, D)", "bias (D)", "y (B, T, D)"},
                                     {field("bt", &ConvolveConfig::bt, "positions of a program"),
                                      field("bd", &ConvolveConfig::bd, "channels of a program"),
                                      field("warps", &ConvolveConfig::warps, "warps of a program")});

} // namespace kiln::bench
