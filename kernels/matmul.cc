// Matrix products (GEMM) with epilogues:
//
//     C = epilogue(op(A) · op(B))        op(X) = X or Xᵀ        sums in f32 (i8: i32)
//
// A program computes a tile (BM, BN) of C. It iterates over K in steps of BK, and each iteration adds a product of two
// tiles to the accumulator.
//
//     symbol    shape        meaning                          symbol    shape       meaning
//     a, b      (BM, BK),    tiles of op(A) and op(B)         m, n      scalars     first row and column of the tile
//               (BK, BN)                                      k         scalar      position along K
//     acc       (BM, BN)     accumulator                      y         (BM, BN)    accumulator after the loop
//
// product() is the algorithm; each kernel below adds its epilogue. The options are functions:
//
//     skinnyProduct()    k_unroll: few rows of A (GEMV)      roundToStored()      activations that are recomputed
//     forTiles()         grouped order, persistent programs  storeColumnSums()    the bias gradient
//
// matmul_plan.cc has checks and launches. matmul_cpu.cc and matmul_gpu.cc choose tile sizes.

#include "kernels/matmul.h"
#include "kernels/gelu.h"
#include "kernels/matmul_pick.h"

#include <algorithm>

namespace kiln {

//===-- The product ---------------------------------------------------------------------------------------------===//

/// acc + op(A) · op(B) for the tile of C at (m, n), summed over k in [begin, end).
static Tile product(View A, View B, Tile m, Tile n, Tile begin, Tile end, Tile acc, const MatmulConfig &cfg) {
  const int64_t BM = cfg.bm, BN = cfg.bn, BK = cfg.bk;
  for (Tile k : range(begin, end, BK)) {
    Tile a = cfg.ta ? transpose(load(A, {k, m}, {BK, BM})) : load(A, {m, k}, {BM, BK}); // (BM, BK)
    Tile b = cfg.tb ? transpose(load(B, {n, k}, {BN, BK})) : load(B, {k, n}, {BK, BN}); // (BK, BN)
    acc = dot(a, b, acc, cfg.precision);                                                // (BM, BN)
  }
  return acc;
}

//===-- Options -------------------------------------------------------------------------------------------------===//

/// Option k_unroll: product() for a few rows of A, with elementwise operations instead of dot(). Each element of C has
/// P partial sums. Each of them covers every P-th position of K; the P sums are added after the loop. Each row of A has
/// its own accumulator tile, so that a thread holds few elements of each tile.
static Tile skinnyProduct(View A, View B, Tile m, Tile n, const MatmulConfig &cfg) {
  const int64_t BM = cfg.bm, BN = cfg.bn, P = cfg.kUnroll;
  const int axis = cfg.tb ? -1 : 0; // the axis of a tile of B that has the P positions of K
  std::vector<Tile> acc(BM);
  for (Tile &row : acc)
    row = zeros(f32, cfg.tb ? Shape{BN, P} : Shape{P, BN}); // (P, BN), or transposed as B is
  for (Tile k : range(0, A.dim(1), cfg.bk)) {
    std::vector<Tile> a, b; // all loads of an iteration come before the first use
    for (int64_t at = 0; at < cfg.bk; at += P) {
      b.push_back(cfg.tb ? load(B, {n, k + at}, {BN, P}) : load(B, {k + at, n}, {P, BN})); // (P, BN)
      for (int64_t row = 0; row < BM; ++row)
        a.push_back(load(A, {m + row, k + at}, {P})); // (P)
    }
    for (size_t i = 0; i < a.size(); ++i) {
      Tile &row = acc[i % BM];
      row = fma(unsqueeze(cast(a[i], f32), cfg.tb ? 0 : -1), cast(b[i / BM], f32), row); // (P, BN)
    }
  }
  Tile y = unsqueeze(sum(acc[0], axis), 0); // (1, BN)
  for (int64_t row = 1; row < BM; ++row)
    y = where(unsqueeze(iota(BM), -1) == row, unsqueeze(sum(acc[row], axis), 0), y); // (BM, BN)
  return y;
}

/// Calls `compute` with the first row and column of each tile of C that this program computes. Tiles are in grouped
/// order (GROUP_M in Triton's matmul tutorial). A band has a few row tiles, and its tiles are numbered column by
/// column. So concurrent programs share few rows of A and few columns of B, which stay in a GPU's L2 cache.
///
/// Without `groupM`, a program computes one tile. The grid is (row tiles of a band, column tiles, bands). A band has at
/// most maxRows row tiles, and a grid at most maxBands bands. With `groupM`, programs are persistent: each computes
/// every num_programs(0)-th tile. With these limits and max(…, 0) the compiler can prove that no position is negative,
/// so rows and columns have no lower bounds to check.
template <class Compute> static void forTiles(View C, const MatmulConfig &cfg, Compute compute) {
  if (cfg.groupM <= 0) {
    Tile row = min(program_id(2), maxBands) * min(num_programs(0), maxRows) + program_id(0);
    return compute(row * cfg.bm, program_id(1) * cfg.bn);
  }
  Tile rows = cdiv(C.dim(0), cfg.bm), columns = cdiv(C.dim(1), cfg.bn);
  Tile bandTiles = cast(columns * cfg.groupM, i32);
  for (Tile tile : range(program_id(0), cdiv(rows, cfg.groupM) * columns * cfg.groupM, num_programs(0))) {
    Tile number = cast(tile, i32);
    Tile band = number / bandTiles, inBand = number - band * bandTiles;
    Tile row = max(band * int(cfg.groupM) + inBand % int(cfg.groupM), 0), column = max(inBand / int(cfg.groupM), 0);
    compute(cast(row, i64) * cfg.bm, cast(column, i64) * cfg.bn);
  }
}

/// The type of the accumulators.
static Type accumulatorType(View A) { return A.type() == i8 ? i32 : f32; }

/// op(A) · op(B) for the tile at (m, n), over all of K.
static Tile product(View A, View B, Tile m, Tile n, const MatmulConfig &cfg) {
  if (cfg.kUnroll > 0)
    return skinnyProduct(A, B, m, n, cfg);
  Tile K = A.dim(cfg.ta ? 0 : 1);
  return product(A, B, m, n, zeros(i64, {}), K, zeros(accumulatorType(A), {cfg.bm, cfg.bn}), cfg);
}

/// A block of a matrix or vector, converted to f32.
static Tile loadFloat(View view, Offsets at, Shape shape) { return cast(load(view, at, shape), f32); }

/// y rounded to C's type. The backward pass recomputes the activation from the stored, rounded value, so the forward
/// pass applies it to that value too.
static Tile roundToStored(Tile y, View C) { return cast(cast(y, C.type()), f32); }

//===-- Kernels: the product and an epilogue --------------------------------------------------------------------===//

/// C (+)= op(A) · op(B).
static void matmul(View A, View B, View C, MatmulConfig cfg) {
  forTiles(C, cfg, [&](Tile m, Tile n) {
    Tile y = product(A, B, m, n, cfg); // (BM, BN)
    if (cfg.accumulate)
      y += cast(load(C, {m, n}, {cfg.bm, cfg.bn}), accumulatorType(A));
    store(C, {m, n}, cast(y, C.type()));
  });
}

/// C = op(A) · op(B) + bias.
static void matmulBias(View A, View B, View bias, View C, MatmulConfig cfg) {
  forTiles(C, cfg, [&](Tile m, Tile n) {
    Tile y = product(A, B, m, n, cfg);   // (BM, BN)
    y += loadFloat(bias, {n}, {cfg.bn}); // (BN), to every row
    store(C, {m, n}, cast(y, C.type()));
  });
}

/// preact = op(A) · op(B) + bias, if it is stored; C = gelu(preact).
static void matmulGelu(View A, View B, View bias, View preact, View C, MatmulConfig cfg) {
  forTiles(C, cfg, [&](Tile m, Tile n) {
    Tile y = product(A, B, m, n, cfg);   // (BM, BN)
    y += loadFloat(bias, {n}, {cfg.bn}); // (BN), to every row
    if (cfg.storePreact)
      store(preact, {m, n}, cast(y, preact.type()));
    store(C, {m, n}, cast(gelu(roundToStored(y, C), accuracyFor(C)), C.type()));
  });
}

/// C = op(A) · op(B) + bias + residual.
static void matmulResidual(View A, View B, View bias, View residual, View C, MatmulConfig cfg) {
  forTiles(C, cfg, [&](Tile m, Tile n) {
    Tile y = product(A, B, m, n, cfg);                  // (BM, BN)
    y += loadFloat(bias, {n}, {cfg.bn});                // (BN), to every row
    y += loadFloat(residual, {m, n}, {cfg.bm, cfg.bn}); // (BM, BN)
    store(C, {m, n}, cast(y, C.type()));
  });
}

/// C = (op(A) · op(B)) ∘ gelu'(preact).
static void matmulGeluBackward(View A, View B, View preact, View C, MatmulConfig cfg) {
  forTiles(C, cfg, [&](Tile m, Tile n) {
    Tile y = product(A, B, m, n, cfg);                                                           // (BM, BN)
    Tile derivative = geluGradient(loadFloat(preact, {m, n}, {cfg.bm, cfg.bn}), accuracyFor(C)); // (BM, BN)
    store(C, {m, n}, cast(y * derivative, C.type()));
  });
}

/// C = residual + drop(activation(op(A) · op(B) + bias)). The config enables each of the four.
static void matmulLinear(View A, View B, View bias, View preact, View residual, View C, View rngState, Tile time,
                         Tile maxLength, Tile threshold, Tile scale, MatmulConfig cfg) {
  forTiles(C, cfg, [&](Tile m, Tile n) {
    Tile y = product(A, B, m, n, cfg); // (BM, BN)
    if (cfg.biased)
      y += loadFloat(bias, {n}, {cfg.bn}); // (BN), to every row
    if (cfg.storePreact)
      store(preact, {m, n}, cast(y, preact.type()));
    if (needsArgument(cfg.activation))
      y = roundToStored(y, C);
    y = activate(cfg.activation, y, accuracyFor(C));                                            // (BM, BN)
    y = dropped(y, cfg.dropout, {rngState, time, maxLength, threshold, scale}, m, C.dim(1), n); // (BM, BN)
    if (cfg.residual)
      y += loadFloat(residual, {m, n}, {cfg.bm, cfg.bn}); // (BM, BN)
    store(C, {m, n}, cast(y, C.type()));
  });
}

/// C = (op(A) · op(B)) ∘ activation'(from) ∘ mask · scale, where mask and scale are those of dropout.
static void matmulLinearBackward(View A, View B, View from, View C, View rngState, Tile time, Tile maxLength,
                                 Tile threshold, Tile scale, MatmulConfig cfg) {
  forTiles(C, cfg, [&](Tile m, Tile n) {
    Tile y = product(A, B, m, n, cfg); // (BM, BN)
    if (cfg.activation != Activation::none)
      y *= activationDerivative(cfg.activation, loadFloat(from, {m, n}, {cfg.bm, cfg.bn}), accuracyFor(C)); // (BM, BN)
    y = dropped(y, cfg.dropout, {rngState, time, maxLength, threshold, scale}, m, C.dim(1), n);             // (BM, BN)
    store(C, {m, n}, cast(y, C.type()));
  });
}

//===-- Weight gradients ----------------------------------------------------------------------------------------===//

/// Option store_bias_grad: db[s] (+)= Σ_k dy[k]. Only the programs of the first row of tiles do this; they have just
/// read these columns of dy.
static void storeColumnSums(View dy, View db, Tile s, Tile m, Tile n, Tile begin, Tile end, const MatmulConfig &cfg) {
  const int64_t BN = cfg.bn, BK = cfg.bk;
  if_(m == 0, [&] {
    Tile columns = zeros(f32, {BN}); // (BN)
    if (cfg.accumulate)
      columns = loadFloat(db, {s, n}, {BN});
    for (Tile k : range(begin, end, BK))
      columns += sum(loadFloat(dy, {k, n}, {BK, BN}), 0); // (BN)
    store(db, {s, n}, cast(columns, db.type()));
  });
}

/// dw[s] (+)= xᵀ · dy and db[s] (+)= Σ_k dy[k], summed over split s of the rows (split-K).
/// x (K, M), dy (K, N), dw (S, M, N), db (S, N).
static void weightGradient(View x, View dy, View dw, View db, MatmulConfig cfg) {
  const int64_t BM = cfg.bm, BN = cfg.bn;
  Tile m = program_id(0) * BM, n = program_id(1) * BN, s = program_id(2);

  // 1. The rows that this program sums: all of them, or split s.
  Tile begin = s * cfg.split, end = x.dim(0);
  if (cfg.split > 0)
    end = min(begin + cfg.split, end);

  // 2. The product.
  Tile y = product(x, dy, m, n, begin, end, zeros(f32, {BM, BN}), cfg); // (BM, BN)
  if (cfg.accumulate)
    y += loadFloat(dw, {s, m, n}, {BM, BN});
  store(dw, {s, m, n}, cast(y, dw.type()));

  // 3. The column sums of dy.
  if (cfg.storeBiasGrad)
    storeColumnSums(dy, db, s, m, n, begin, end, cfg);
}

//===-- Registration --------------------------------------------------------------------------------------------===//

static std::vector<Field> fields() {
  return {
      field("bm", &MatmulConfig::bm, "rows of a tile of C").among({16, 32, 64, 128}),
      field("bn", &MatmulConfig::bn, "columns of a tile of C").among({16, 32, 64, 128, 256}),
      field("bk", &MatmulConfig::bk, "extent of K that one iteration multiplies").among({16, 32, 64, 128}).changing(),
      field("split", &MatmulConfig::split, "weight_gradient: rows of A and B that a program sums (0: all)"),
      field("ta", &MatmulConfig::ta, "A is stored transposed, (K, M)"),
      field("tb", &MatmulConfig::tb, "B is stored transposed, (N, K)"),
      field("accumulate", &MatmulConfig::accumulate, "adds to the results instead of replacing them"),
      field("precision", &MatmulConfig::precision, precisionNames,
            "precision of f32 products: ieee, tf32, tf32x3 or bf16x3"),
      field("warps", &MatmulConfig::warps, "warps of a program, on a GPU").among({2, 4, 8}),
      field("stages", &MatmulConfig::stages, "pipeline stages in a GPU's shared memory (0: up to 3, as many as fit)")
          .among({0, 2, 4}),
      field("group_m", &MatmulConfig::groupM,
            "GROUP_M: row tiles of a band of persistent programs (0: a program computes one tile)"),
      field("k_unroll", &MatmulConfig::kUnroll,
            "partial sums of an element of C, for a few rows of A (0: tiles and dot)")};
}
static std::vector<Field> fieldsWith(Field stored) {
  std::vector<Field> all = fields();
  all.push_back(std::move(stored));
  return all;
}
static Field storePreactField() {
  return field("store_preact", &MatmulConfig::storePreact, "stores the pre-activation");
}
/// Whether a tuner should try the config. On a CPU, the fields for GPUs keep their defaults, and the tiles of an
/// iteration fit in the L2 cache. On a GPU, the stages fit in shared memory, and the accumulator fits in half of the
/// registers of a program.
static bool isCandidate(const MatmulConfig &cfg, const Target &target) {
  const int64_t step = int64_t{4} * cfg.bk * (cfg.bm + cfg.bn), sums = int64_t{4} * cfg.bm * cfg.bn;
  return target.visit(
      [&](const CpuFacts &cpu) {
        return cfg.warps == MatmulConfig().warps && cfg.stages == 0 && step + sums <= cpu.l2Bytes;
      },
      [&](const GpuFacts &gpu) {
        return step * std::max(cfg.stages, 1) <= gpu.ctaSharedBytes && sums <= int64_t{32} * cfg.warps * 128 * 4;
      });
}

const Kernel matmulKernel =
    kernel("matmul", matmul,
           {"a (M, K) float or i8, or transposed", "b (K, N) as a, or transposed", "c (M, N) float or i32, a · b"},
           fields(), isCandidate);
const Kernel matmulBiasKernel =
    kernel("matmul_bias", matmulBias,
           {"a (M, K), or transposed", "b (K, N) as a, or transposed", "bias (N)", "c (M, N), a · b + bias"}, fields(),
           isCandidate);
const Kernel matmulGeluKernel =
    kernel("matmul_gelu", matmulGelu,
           {"a (M, K), or transposed", "b (K, N) as a, or transposed", "bias (N)",
            "preact (M, N), a · b + bias, written with store_preact", "c (M, N), gelu(a · b + bias)"},
           fieldsWith(storePreactField()), isCandidate);
const Kernel matmulResidualKernel = kernel("matmul_residual", matmulResidual,
                                           {"a (M, K), or transposed", "b (K, N) as a, or transposed", "bias (N)",
                                            "residual (M, N)", "c (M, N), a · b + bias + residual"},
                                           fields(), isCandidate);
const Kernel matmulGeluBackwardKernel = kernel("matmul_gelu_backward", matmulGeluBackward,
                                               {"a (M, K), or transposed", "b (K, N) as a, or transposed",
                                                "preact (M, N), the input of gelu", "c (M, N), a · b · gelu'(preact)"},
                                               fields(), isCandidate);
static std::vector<Field> linearFields() {
  std::vector<Field> all = fieldsWith(storePreactField());
  all.push_back(field("biased", &MatmulConfig::biased, "adds bias"));
  all.push_back(field("residual", &MatmulConfig::residual, "adds residual at the end"));
  all.push_back(
      field("activation", &MatmulConfig::activation, activationNames, "none, gelu, gelu_erf, relu, relu2 or silu"));
  all.push_back(field("dropout", &MatmulConfig::dropout, dropoutModeNames, "dropout: off, scale_only or random"));
  return all;
}
const Kernel matmulLinearKernel =
    kernel("matmul_linear", matmulLinear,
           {"a (M, K), or transposed", "b (K, N) as a, or transposed", "bias (N)",
            "preact (M, N), a · b + bias, written with store_preact", "residual (M, N)",
            "c (M, N), residual + drop(activation(a · b + bias))", aboutDropoutState, aboutDropoutTime,
            aboutDropoutLength, aboutThreshold, "scale f32, the factor of kept elements"},
           linearFields(), isCandidate);
const Kernel matmulLinearBackwardKernel =
    kernel("matmul_linear_backward", matmulLinearBackward,
           {"a (M, K), or transposed", "b (K, N) as a, or transposed",
            "from (M, N), the input of the activation, or relu's result",
            "c (M, N), a · b · activation'(from) times the dropout mask", aboutDropoutState, aboutDropoutTime,
            aboutDropoutLength, aboutThreshold, "scale f32, the factor of kept elements"},
           linearFields(), isCandidate);
const Kernel weightGradientKernel =
    kernel("weight_gradient", weightGradient,
           {"x (K, M)", "dy (K, N) as x", "dw (S, M, N), xᵀ · dy of each split of the rows",
            "db (S, N), the column sums of dy"},
           fieldsWith(field("store_bias_grad", &MatmulConfig::storeBiasGrad, "stores db")), isCandidate);

} // namespace kiln
