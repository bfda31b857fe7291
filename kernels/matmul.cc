// Matrix products: one loop over K, shared by every kernel, and an epilogue each.

#include "kernels/matmul.h"
#include "kernels/expect.h"
#include "kernels/gelu.h"
#include "kernels/matmul_pick.h"

#include <algorithm>

namespace kiln {

//===-- Kernels -------------------------------------------------------------------------------------------------===//

/// acc + op(A) · op(B) for the tile of C at (m, n), summed over k from `begin` to `end`.
static Tile product(View a, View b, Tile m, Tile n, Tile begin, Tile end, Tile acc, const MatmulConfig &cfg) {
  const int64_t BM = cfg.bm, BN = cfg.bn, BK = cfg.bk;
  for (Tile k : range(begin, end, BK)) {
    Tile left = cfg.ta ? transpose(load(a, {k, m}, {BK, BM})) : load(a, {m, k}, {BM, BK});  // (BM, BK)
    Tile right = cfg.tb ? transpose(load(b, {n, k}, {BN, BK})) : load(b, {k, n}, {BK, BN}); // (BK, BN)
    acc = dot(left, right, acc, cfg.precision);                                             // (BM, BN)
  }
  return acc;
}

/// The same for a few rows, whose sums are kept in `side` parts, each over every side-th step of K, and added at the
/// end. Each row is multiplied by itself: what a thread needs of it is as little as possible.
static Tile streamed(View a, View b, Tile m, Tile n, const MatmulConfig &cfg) {
  const int64_t BM = cfg.bm, BN = cfg.bn, P = cfg.kUnroll;
  std::vector<Tile> acc(BM);
  for (Tile &row : acc)
    row = zeros(f32, cfg.tb ? Shape{BN, P} : Shape{P, BN}); // (P, BN), or turned as B is
  for (Tile k : range(0, a.dim(1), cfg.bk)) {
    std::vector<Tile> left, right; // all of a step is on its way at once
    for (int64_t at = 0; at < cfg.bk; at += P) {
      right.push_back(cfg.tb ? load(b, {n, k + at}, {BN, P}) : load(b, {k + at, n}, {P, BN})); // (P, BN)
      for (int64_t row = 0; row < BM; ++row)
        left.push_back(load(a, {m + row, k + at}, {P})); // (P)
    }
    for (size_t i = 0; i < left.size(); ++i) {
      Tile &row = acc[i % BM];
      row = fma(unsqueeze(cast(left[i], f32), cfg.tb ? 0 : -1), cast(right[i / BM], f32), row); // (P, BN)
    }
  }
  Tile y = unsqueeze(sum(acc[0], cfg.tb ? -1 : 0), 0); // (1, BN)
  for (int64_t row = 1; row < BM; ++row)
    y = where(unsqueeze(iota(BM), -1) == row, unsqueeze(sum(acc[row], cfg.tb ? -1 : 0), 0), y); // (BM, BN)
  return y;
}

/// A place of C.
struct Corner {
  Tile m, n;
};

/// Where this program's tile of C begins. The grid is (rows of tiles of a band, columns of tiles, bands): programs that
/// run at a time read few rows of A and few columns of B, which the second-level cache of a GPU then holds. No band has
/// more rows than mostRows, and no grid more bands than mostBands; so the compiler knows that no place is negative.
static Corner corner(const MatmulConfig &cfg) {
  Tile row = min(program_id(2), mostBands) * min(num_programs(0), mostRows) + program_id(0);
  return {row * cfg.bm, program_id(1) * cfg.bn};
}

/// The type that products of elements of `view` are summed in.
static Type sumsOf(View view) { return view.type() == i8 ? i32 : f32; }

/// The tile at (m, n), over all of K.
static Tile product(View a, View b, Tile m, Tile n, const MatmulConfig &cfg) {
  if (cfg.kUnroll > 0)
    return streamed(a, b, m, n, cfg);
  Tile K = a.dim(cfg.ta ? 0 : 1);
  return product(a, b, m, n, zeros(i64, {}), K, zeros(sumsOf(a), {cfg.bm, cfg.bn}), cfg);
}

/// A tile of a matrix or a piece of a vector, in f32.
static Tile loadFloat(View view, Offsets at, Shape shape) { return cast(load(view, at, shape), f32); }

/// C (+)= op(A) · op(B).
static void matmul(View a, View b, View c, MatmulConfig cfg) {
  const auto [m, n] = corner(cfg);
  Tile y = product(a, b, m, n, cfg); // (BM, BN)
  if (cfg.accumulate)
    y += cast(load(c, {m, n}, {cfg.bm, cfg.bn}), sumsOf(a));
  store(c, {m, n}, cast(y, c.type()));
}

/// C = op(A) · op(B) + bias.
static void matmulBias(View a, View b, View bias, View c, MatmulConfig cfg) {
  const auto [m, n] = corner(cfg);
  Tile y = product(a, b, m, n, cfg);   // (BM, BN)
  y += loadFloat(bias, {n}, {cfg.bn}); // (BN), to every row
  store(c, {m, n}, cast(y, c.type()));
}

/// `y` as a matrix of C's type holds it: what an activation is applied to, so that it can be made again of that alone.
static Tile asHeld(Tile y, View c) { return cast(cast(y, c.type()), f32); }

/// preact = op(A) · op(B) + bias, when it is kept; C = gelu(preact).
static void matmulGelu(View a, View b, View bias, View preact, View c, MatmulConfig cfg) {
  const auto [m, n] = corner(cfg);
  Tile y = product(a, b, m, n, cfg);   // (BM, BN)
  y += loadFloat(bias, {n}, {cfg.bn}); // (BN), to every row
  if (cfg.storePreact)
    store(preact, {m, n}, cast(y, preact.type()));
  store(c, {m, n}, cast(gelu(asHeld(y, c), enoughFor(c)), c.type()));
}

/// C = op(A) · op(B) + bias + residual.
static void matmulResidual(View a, View b, View bias, View residual, View c, MatmulConfig cfg) {
  const auto [m, n] = corner(cfg);
  Tile y = product(a, b, m, n, cfg);                  // (BM, BN)
  y += loadFloat(bias, {n}, {cfg.bn});                // (BN), to every row
  y += loadFloat(residual, {m, n}, {cfg.bm, cfg.bn}); // (BM, BN)
  store(c, {m, n}, cast(y, c.type()));
}

/// C = (op(A) · op(B)) ∘ gelu'(preact).
static void matmulGeluBackward(View a, View b, View preact, View c, MatmulConfig cfg) {
  const auto [m, n] = corner(cfg);
  Tile y = product(a, b, m, n, cfg);                                                    // (BM, BN)
  Tile slope = geluGradient(loadFloat(preact, {m, n}, {cfg.bm, cfg.bn}), enoughFor(c)); // (BM, BN)
  store(c, {m, n}, cast(y * slope, c.type()));
}

/// C = residual + drop(activation(op(A) · op(B) + bias)), each where the config has it.
static void matmulLinear(View a, View b, View bias, View preact, View residual, View c, View site, Tile time, Tile most,
                         Tile threshold, Tile scale, MatmulConfig cfg) {
  const auto [m, n] = corner(cfg);
  Tile y = product(a, b, m, n, cfg); // (BM, BN)
  if (cfg.biased)
    y += loadFloat(bias, {n}, {cfg.bn}); // (BN), to every row
  if (cfg.storePreact)
    store(preact, {m, n}, cast(y, preact.type()));
  if (needsArgument(cfg.activation))
    y = asHeld(y, c);
  y = dropped(activate(cfg.activation, y, enoughFor(c)), cfg.drop, {site, time, most, threshold, scale}, m, c.dim(1),
              n); // (BM, BN)
  if (cfg.residual)
    y += loadFloat(residual, {m, n}, {cfg.bm, cfg.bn}); // (BM, BN)
  store(c, {m, n}, cast(y, c.type()));
}

/// C = (op(A) · op(B)) ∘ activation' ∘ mask · scale.
static void matmulLinearBackward(View a, View b, View from, View c, View site, Tile time, Tile most, Tile threshold,
                                 Tile scale, MatmulConfig cfg) {
  const auto [m, n] = corner(cfg);
  Tile y = product(a, b, m, n, cfg); // (BM, BN)
  if (cfg.activation != Activation::none)
    y *= activationSlope(cfg.activation, loadFloat(from, {m, n}, {cfg.bm, cfg.bn}), enoughFor(c)); // (BM, BN)
  y = dropped(y, cfg.drop, {site, time, most, threshold, scale}, m, c.dim(1), n);                  // (BM, BN)
  store(c, {m, n}, cast(y, c.type()));
}

/// dw[s] (+)= xᵀ · dy and db[s] (+)= Σ_k dy[k] over the s-th part of the rows. x (K, M), dy (K, N), dw (S, M, N), db
/// (S, N).
static void weightGradient(View x, View dy, View dw, View db, MatmulConfig cfg) {
  const int64_t BM = cfg.bm, BN = cfg.bn, BK = cfg.bk;
  Tile m = program_id(0) * BM, n = program_id(1) * BN, s = program_id(2);

  // 1. The rows that this program sums: all of them, or part s.
  Tile begin = s * cfg.split, end = x.dim(0);
  if (cfg.split > 0)
    end = min(begin + cfg.split, end);

  // 2. The product.
  Tile y = product(x, dy, m, n, begin, end, zeros(f32, {BM, BN}), cfg); // (BM, BN)
  if (cfg.accumulate)
    y += loadFloat(dw, {s, m, n}, {BM, BN});
  store(dw, {s, m, n}, cast(y, dw.type()));

  // 3. Column sums of dy, by the programs of the first row of tiles, which have just read these columns.
  if (!cfg.storeBiasGrad)
    return;
  if_(m == 0, [&] {
    Tile columns = zeros(f32, {BN}); // (BN)
    if (cfg.accumulate)
      columns = loadFloat(db, {s, n}, {BN});
    for (Tile k : range(begin, end, BK))
      columns += sum(loadFloat(dy, {k, n}, {BK, BN}), 0); // (BN)
    store(db, {s, n}, cast(columns, db.type()));
  });
}

static std::vector<Field> fields() {
  return {
      field("bm", &MatmulConfig::bm, "rows of a tile of C").among({16, 32, 64, 128}),
      field("bn", &MatmulConfig::bn, "columns of a tile of C").among({16, 32, 64, 128, 256}),
      field("bk", &MatmulConfig::bk, "length of the sum that one step of the loop adds")
          .among({16, 32, 64, 128})
          .changing(),
      field("split", &MatmulConfig::split, "rows of A and B that a program of weight_gradient sums (0: all)"),
      field("ta", &MatmulConfig::ta, "A is stored transposed, (K, M)"),
      field("tb", &MatmulConfig::tb, "B is stored transposed, (N, K)"),
      field("accumulate", &MatmulConfig::accumulate, "adds to what the results hold"),
      field("precision", &MatmulConfig::precision, precisionNames, "of products of f32: ieee, tf32, tf32x3 or bf16x3"),
      field("warps", &MatmulConfig::warps, "warps of a program, on a GPU").among({2, 4, 8}),
      field("stages", &MatmulConfig::stages, "steps whose operands a GPU holds in shared memory (0: up to 3, as fit)")
          .among({0, 2, 4}),
      field("k_unroll", &MatmulConfig::kUnroll,
            "steps of K that few rows are multiplied by side by side (0: by tiles)")};
}
static std::vector<Field> with(Field stored) {
  std::vector<Field> all = fields();
  all.push_back(std::move(stored));
  return all;
}
static Field storePreactField() {
  return field("store_preact", &MatmulConfig::storePreact, "stores the pre-activation");
}
/// Configs worth trying. On a CPU the fields of GPUs stay, and the tiles of a step fit the second-level cache. On a GPU
/// they fit shared memory, and the accumulators half the registers of a thread.
static bool fits(const MatmulConfig &cfg, const Target &target) {
  const int64_t step = int64_t{4} * cfg.bk * (cfg.bm + cfg.bn), sums = int64_t{4} * cfg.bm * cfg.bn;
  return target.visit(
      [&](const CpuFacts &cpu) {
        return cfg.warps == MatmulConfig().warps && cfg.stages == 0 && step + sums <= cpu.l2Bytes;
      },
      [&](const GpuFacts &gpu) {
        return step * std::max(cfg.stages, 1) <= gpu.ctaSharedBytes && sums <= int64_t{32} * cfg.warps * 128 * 4;
      });
}

const Kernel matmulKernel = kernel("matmul", matmul, {"a (M, K)", "b (K, N)", "c (M, N), a · b"}, fields(), fits);
const Kernel matmulBiasKernel =
    kernel("matmul_bias", matmulBias, {"a (M, K)", "b (K, N)", "bias (N)", "c (M, N), a · b + bias"}, fields(), fits);
const Kernel matmulGeluKernel = kernel(
    "matmul_gelu", matmulGelu,
    {"a (M, K)", "b (K, N)", "bias (N)", "preact (M, N), a · b + bias when kept", "c (M, N), gelu(a · b + bias)"},
    with(storePreactField()), fits);
const Kernel matmulResidualKernel = kernel(
    "matmul_residual", matmulResidual,
    {"a (M, K)", "b (K, N)", "bias (N)", "residual (M, N)", "c (M, N), a · b + bias + residual"}, fields(), fits);
const Kernel matmulGeluBackwardKernel =
    kernel("matmul_gelu_backward", matmulGeluBackward,
           {"a (M, K)", "b (K, N)", "preact (M, N), what gelu was applied to", "c (M, N), a · b · gelu'(preact)"},
           fields(), fits);
static std::vector<Field> linearFields() {
  std::vector<Field> all = with(storePreactField());
  all.push_back(field("biased", &MatmulConfig::biased, "adds bias"));
  all.push_back(field("residual", &MatmulConfig::residual, "adds residual at the end"));
  all.push_back(
      field("activation", &MatmulConfig::activation, activationNames, "none, gelu, gelu_erf, relu, relu2 or silu"));
  all.push_back(field("drop", &MatmulConfig::drop, dropoutModeNames, "dropout: off, scale_only or random"));
  return all;
}
const Kernel matmulLinearKernel =
    kernel("matmul_linear", matmulLinear,
           {"a (M, K)", "b (K, N)", "bias (N)", "preact (M, N), a · b + bias when kept", "residual (M, N)",
            "c (M, N), residual + drop(activation(a · b + bias))",
            "site (2) i64, the key of dropout and the number of the first sequence", "time i64, rows of a sequence",
            "most i64, rows that a sequence may have", "threshold i64, of 65536 chances those that drop",
            "scale f32, what kept numbers are multiplied by"},
           linearFields(), fits);
const Kernel matmulLinearBackwardKernel =
    kernel("matmul_linear_backward", matmulLinearBackward,
           {"a (M, K)", "b (K, N)", "from (M, N), what the activation was applied to, or relu's result",
            "c (M, N), a · b · activation'(from) of what is kept",
            "site (2) i64, the key of dropout and the number of the first sequence", "time i64, rows of a sequence",
            "most i64, rows that a sequence may have", "threshold i64, of 65536 chances those that drop",
            "scale f32, what kept numbers are multiplied by"},
           linearFields(), fits);
const Kernel weightGradientKernel = kernel(
    "weight_gradient", weightGradient,
    {"x (K, M)", "dy (K, N)", "dw (S, M, N), xᵀ · dy of each part of the rows", "db (S, N), the column sums of dy"},
    with(field("store_bias_grad", &MatmulConfig::storeBiasGrad, "stores db")), fits);

} // namespace kiln
