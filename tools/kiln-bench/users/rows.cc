// Users' row kernels: RMSNorm, softmax, group norm, a KL loss with its gradient, top-k.

#include "tools/kiln-bench/users/users.h"

namespace kiln::bench {

// --- Norms -----------------------------------------------------------------------------------------------------------

static void rmsNorm(View x, View gamma, View y, RowsConfig cfg) {
  const int64_t C = x.extent(1);
  Tile m = program_id(0) * cfg.rows;
  Tile v = cast(load(x, {m, 0}, {cfg.rows, C}), f32); // (rows, C)
  Tile scale = rsqrt(sum(v * v, -1, keep) * (1.0 / static_cast<double>(C)) + 1e-6, Accuracy::fast);
  store(y, {m, 0}, cast(v * scale * cast(load(gamma, {0}, {C}), f32), y.type()));
}
const Kernel rmsNormKernel = kernel("rms_norm", rmsNorm, {"x (N, C)", "gamma (C)", "y (N, C)"}, rowsFields());

static void softmaxOf(View x, View y, RowsConfig cfg) {
  const int64_t C = x.extent(1);
  Tile m = program_id(0) * cfg.rows;
  Tile v = cast(load(x, {m, 0}, {cfg.rows, C}, Padding::neg_inf), f32); // (rows, C)
  Tile e = exp(v - reduce_max(v, -1, keep), Accuracy::fast);
  store(y, {m, 0}, cast(divide(e, sum(e, -1, keep), Accuracy::fast), y.type()));
}
const Kernel userSoftmaxKernel = kernel("user_softmax", softmaxOf, {"x (N, C)", "y (N, C)"}, rowsFields());

static void groupNorm(View x, View gamma, View beta, View y, GroupNormConfig cfg) {
  const int64_t S = x.extent(2), count = cfg.channels * S;
  Tile c = program_id(0) * cfg.channels, n = program_id(1);
  Tile v = cast(load(x, {n, c, 0}, {cfg.channels, S}), f32); // (channels, S)
  Tile centred = v - sum(v, everywhere) * (1.0 / static_cast<double>(count));
  Tile scale = rsqrt(sum(centred * centred, everywhere) * (1.0 / static_cast<double>(count)) + 1e-5, Accuracy::fast);
  Tile factor = unsqueeze(cast(load(gamma, {c}, {cfg.channels}), f32), -1); // (channels, 1)
  Tile shift = unsqueeze(cast(load(beta, {c}, {cfg.channels}), f32), -1);
  store(y, {n, c, 0}, cast(fma(centred * scale, factor, shift), y.type()));
}
const Kernel groupNormKernel = kernel("group_norm", groupNorm, {"x (N, C, S)", "gamma (C)", "beta (C)", "y (N, C, S)"},
                                      {field("channels", &GroupNormConfig::channels, "channels of a group"),
                                       field("warps", &GroupNormConfig::warps, "warps of a program")});

// --- A loss ----------------------------------------------------------------------------------------------------------

static void klLoss(View logP, View logQ, View losses, View gradient, Tile scale, BlockConfig cfg) {
  Tile n = program_id(0), total = zeros(f32, {cfg.block});
  for (Tile c : range(0, logP.dim(1), cfg.block)) {
    Tile p = cast(load(logP, {n, c}, {cfg.block}), f32);
    Tile q = cast(load(logQ, {n, c}, {cfg.block}, Padding::neg_inf), f32);
    Tile weight = exp(q, Accuracy::fast); // (block), 0 past the row's end
    total = where(q > -infinity, fma(weight, q - p, total), total);
    store(gradient, {n, c}, cast(weight * -scale, gradient.type()));
  }
  store(losses, {n}, sum(total));
}
const Kernel klLossKernel = kernel("kl_loss", klLoss,
                                   {"p (N, C), as logarithms", "q (N, C), as logarithms", "losses (N) f32",
                                    "gradient (N, C), by the former", "scale of the gradient"},
                                   blockFields());

// --- Ranks -----------------------------------------------------------------------------------------------------------

static void largest(View x, View values, View places, LargestConfig cfg) {
  const int64_t C = x.extent(1);
  Tile m = program_id(0) * cfg.rows;
  Tile row = load(x, {m, 0}, {cfg.rows, C}, Padding::neg_inf); // (rows, C)
  for (int i = 0; i < cfg.k; ++i) {
    Tile place = argmax(row, 1, keep); // (rows, 1)
    store(values, {m, i}, reduce_max(row, 1, keep));
    store(places, {m, i}, place);
    row = where(iota(C) == place, -infinity, row);
  }
}
const Kernel largestKernel = kernel("largest", largest, {"x (N, C)", "values (N, k)", "places (N, k) i32"},
                                    {field("rows", &LargestConfig::rows, "rows of a program"),
                                     field("k", &LargestConfig::k, "elements of a row that are wanted"),
                                     field("warps", &LargestConfig::warps, "warps of a program")});

} // namespace kiln::bench
