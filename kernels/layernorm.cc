// LayerNorm over the last dimension: Ba, Kiros & Hinton, "Layer Normalization", 2016. Forward, for a row x of C
// elements:
//
//     mean = Σ x / C      var = Σ (x − mean)² / (C − ddof)      rstd = 1 / √(var + ε)      x̂ = (x − mean) · rstd
//     y = x̂ · gamma + beta
//
// Backward, with g = dy · gamma and q = C / (C − ddof). For the population variance, ddof = 0 and q = 1:
//
//     dx = (g − mean(g) − x̂ · mean(g · x̂) · q) · rstd      dgamma = Σ_n dy · x̂      dbeta = Σ_n dy
//
//     symbol        shape      meaning                          symbol     shape      meaning
//     x, y          (BN, C)    rows, before and after           dy, dx     (BN, C)    gradients of y and x
//     xhat          (BN, C)    x̂, the normalised rows           g          (BN, C)    gradient of x̂
//     mean, rstd    (BN)       statistics of the rows           n          scalar     first row of a tile
//
// A program has a few rows. Their tiles have exactly the width C and stay in the L1 cache or in registers between the
// passes over a row. normalise() and rowGradient() are the algorithms. Their options follow as functions:
// reciprocalDeviation() (ε outside the root, ε = 0), scaleAndShift() (affine) and correctForEpsOutside() (ε outside the
// root, backward). The sums over rows use no atomics. Each program of the backward pass writes one partial row, and a
// second launch adds these in order.

#include "kernels/layernorm.h"
#include "kernels/blocks.h"
#include "kernels/operands.h"
#include "kernels/rows.h"
#include "kernels/sum.h"

#include <algorithm>

namespace kiln {

namespace {
/// The arguments that both forward kernels have.
struct NormArgs {
  View gamma, beta, out, mean, rstd;
  Tile epsilon;
};

/// Constants of the heuristics. Registers limit the number of CTAs per SM; `kiln-bench ptxas` prints the limit.
/// `kiln-bench layernorm` measures a CPU.
struct LayerNormTiles {
  int cpuRows = 4;                                        // rows a program, forward, on a CPU
  int64_t narrowC = 768, wideC = 1024, widestC = 2048;    // elements of a row
  int narrowCtas = 8, wideCtas = 4;                       // forward: two-byte rows up to narrowC; up to wideC
  int narrowBackwardCtas = 3, backwardCtas = 2;           // backward: two-byte rows up to narrowC; others
  int rows = 4, wideRows = 2, widestRows = 1;             // backward: rows a tile up to wideC, up to widestC, beyond
  int64_t minRowsAProgram = 8, maxRowsAProgram = 1 << 20; // backward: a partial row costs the traffic of two rows
};
constexpr LayerNormTiles tiling;
} // namespace

//===-- Forward -------------------------------------------------------------------------------------------------===//

static Tile reciprocalDeviation(Tile variance, Tile epsilon, const LayerNormConfig &cfg);
static Tile scaleAndShift(Tile xhat, View gamma, View beta);

/// y, mean and rstd of the rows x (BN, C) from `n` on.
static void normalise(Tile x, Tile n, const NormArgs &to, const LayerNormConfig &cfg) {
  const int64_t C = x.extent(1);

  // 1. Mean and variance. The variance sums centred values, because E[x²] − mean² loses digits by cancellation.
  Tile mean = sum(x) / C;                                     // (BN)
  Tile centred = x - unsqueeze(mean, -1);                     // (BN, C)
  Tile variance = sum(centred * centred) / (C - cfg.ddof);    // (BN)
  Tile rstd = reciprocalDeviation(variance, to.epsilon, cfg); // (BN)       options: ε outside the root, ε = 0

  // 2. Normalise, scale and shift.
  Tile y = centred * unsqueeze(rstd, -1); // (BN, C)
  if (cfg.affine)
    y = scaleAndShift(y, to.gamma, to.beta); // (BN, C)    option: affine
  store(to.out, {n, 0}, cast(y, to.out.type()));
  store(to.mean, {n}, mean);
  store(to.rstd, {n}, rstd);
}

/// rstd of rows (BN). If ε is 0, a row of equal elements has rstd 0.
static Tile reciprocalDeviation(Tile variance, Tile epsilon, const LayerNormConfig &cfg) {
  Tile rstd = cfg.epsOutsideSqrt ? 1.0 / (sqrt(variance) + epsilon) : rsqrt(variance + epsilon);
  return cfg.epsIsZero ? where(variance > 0.0, rstd, 0.0) : rstd;
}

/// x̂ · gamma + beta, (BN, C).
static Tile scaleAndShift(Tile xhat, View gamma, View beta) {
  const int64_t C = xhat.extent(1);
  Tile scale = cast(load(gamma, {0}, {C}), f32); // (C)
  Tile shift = cast(load(beta, {0}, {C}), f32);  // (C)
  return xhat * scale + shift;                   // (BN, C)
}

static void layernorm(View x, View gamma, View beta, View out, View mean, View rstd, Tile epsilon,
                      LayerNormConfig cfg) {
  const Shape block = {cfg.rows, width({x, cfg.affine ? gamma : x, cfg.affine ? beta : x, out})};
  Tile n = program_id() * cfg.rows;
  Tile row = cast(load(x, {n, 0}, block), f32); // (BN, C)
  normalise(row, n, {gamma, beta, out, mean, rstd, epsilon}, cfg);
}

/// sum = x + delta, rounded to its type; out = LayerNorm(sum).
static void residualLayernorm(View x, View delta, View gamma, View beta, View sum, View out, View mean, View rstd,
                              Tile epsilon, LayerNormConfig cfg) {
  const Shape block = {cfg.rows, width({x, delta, cfg.affine ? gamma : x, cfg.affine ? beta : x, sum, out})};
  Tile n = program_id() * cfg.rows;
  Tile before = cast(load(x, {n, 0}, block), f32);    // (BN, C)
  Tile added = cast(load(delta, {n, 0}, block), f32); // (BN, C)
  Tile after = cast(before + added, sum.type());      // (BN, C)
  store(sum, {n, 0}, after);
  normalise(cast(after, f32), n, {gamma, beta, out, mean, rstd, epsilon}, cfg);
}

//===-- Backward ------------------------------------------------------------------------------------------------===//

/// Option ε outside the root: 1 / rstd = σ + ε, so σ · rstd = 1 − ε · rstd. The derivative of σ divides q by this
/// factor. If σ = 0, then x̂ = 0 and the term is 0. gxMean and rstd (BN, 1).
static Tile correctForEpsOutside(Tile gxMean, Tile epsilon, Tile rstd) {
  Tile deviation = 1.0 - epsilon * rstd; // (BN, 1)
  return where(deviation > 0.0, gxMean / deviation, 0.0);
}

/// dx = (g − mean(g) − x̂ · mean(g · x̂) · q) · rstd. g and xhat (BN, C), rstd (BN, 1).
static Tile rowGradient(Tile g, Tile xhat, Tile rstd, Tile epsilon, const LayerNormBackwardConfig &cfg) {
  const int64_t C = g.extent(1);
  Tile gMean = unsqueeze(sum(g) / C, -1);                      // (BN, 1)
  Tile gxMean = unsqueeze(sum(g * xhat) / (C - cfg.ddof), -1); // (BN, 1)    times q
  if (cfg.epsOutsideSqrt)
    gxMean = correctForEpsOutside(gxMean, epsilon, rstd); // (BN, 1)
  return (g - gMean - xhat * gxMean) * rstd;              // (BN, C)
}

/// dx of every row, and one partial row of dgamma and of dbeta for each program. dgamma, dbeta (P, C).
static void layernormBackward(View dout, View x, View gamma, View mean, View rstd, View residual, View dx, View dgamma,
                              View dbeta, Tile epsilon, LayerNormBackwardConfig cfg) {
  const int64_t C = cfg.affine ? width({dout, x, gamma, residual, dx, dgamma, dbeta}) : width({dout, x, residual, dx});
  const Shape block = {cfg.block, C};
  Tile p = program_id();
  Tile begin = p * cfg.rows, end = min(begin + cfg.rows, x.dim(0));
  Tile scale; // (C)
  if (cfg.affine)
    scale = cast(load(gamma, {0}, {C}), f32);
  Tile dscale = zeros(f32, block), dshift = zeros(f32, block); // (BN, C), carried through the loop

  for (Tile n : range(begin, end, cfg.block)) {
    // 1. Recompute x̂. Rows past the end are zeros and add nothing.
    Tile mu = unsqueeze(load(mean, {n}, {cfg.block}), -1);    // (BN, 1)
    Tile r = unsqueeze(load(rstd, {n}, {cfg.block}), -1);     // (BN, 1)
    Tile xhat = (cast(load(x, {n, 0}, block), f32) - mu) * r; // (BN, C)
    Tile dy = cast(load(dout, {n, 0}, block), f32);           // (BN, C)

    // 2. dgamma and dbeta of these rows, before dx may overwrite dout.
    if (cfg.affine) {
      dscale += dy * xhat; // (BN, C)
      dshift += dy;        // (BN, C)
    }

    // 3. dx.
    Tile g = cfg.affine ? dy * scale : dy;             // (BN, C)
    Tile grad = rowGradient(g, xhat, r, epsilon, cfg); // (BN, C)
    if (cfg.accumulate)
      grad += cast(load(cfg.separateResidual ? residual : dx, {n, 0}, block), f32);
    store(dx, {n, 0}, cast(grad, dx.type()));
  }
  if (!cfg.affine)
    return;
  store(dgamma, {p, 0}, sum(dscale, 0));
  store(dbeta, {p, 0}, sum(dshift, 0));
}

//===-- Registration --------------------------------------------------------------------------------------------===//

static std::vector<Field> forwardFields() {
  return {field("rows", &LayerNormConfig::rows, "rows a program").among({1, 2, 4, 8, 16, 32}),
          field("min_ctas_per_sm", &LayerNormConfig::minCtasPerSm, "minimum resident CTAs per SM"),
          field("ddof", &LayerNormConfig::ddof, "delta degrees of freedom: the variance divides by C - ddof"),
          field("eps_outside_sqrt", &LayerNormConfig::epsOutsideSqrt, "epsilon is added to the root"),
          field("eps_is_zero", &LayerNormConfig::epsIsZero, "epsilon is 0: rows without variance become zeros"),
          field("affine", &LayerNormConfig::affine, "affine: times gamma, plus beta")};
}
static std::vector<Field> backwardFields() {
  return {field("block", &LayerNormBackwardConfig::block, "rows a tile"),
          field("rows", &LayerNormBackwardConfig::rows, "rows a program; it writes one partial row of each sum"),
          field("min_ctas_per_sm", &LayerNormBackwardConfig::minCtasPerSm, "minimum resident CTAs per SM"),
          field("accumulate", &LayerNormBackwardConfig::accumulate, "adds the previous values of dx, or residual"),
          field("separate_residual", &LayerNormBackwardConfig::separateResidual,
                "adds residual, which is not the memory of dx"),
          field("ddof", &LayerNormBackwardConfig::ddof, "delta degrees of freedom: the variance divides by C - ddof"),
          field("eps_outside_sqrt", &LayerNormBackwardConfig::epsOutsideSqrt, "epsilon was added to the root"),
          field("affine", &LayerNormBackwardConfig::affine, "affine (gamma and beta); computes their gradients")};
}
const Kernel layernormKernel = kernel("layernorm", layernorm,
                                      {"x (N, C)", "gamma (C)", "beta (C)", "out (N, C)", "mean (N) f32",
                                       "rstd (N) f32, 1 / √(variance + epsilon)", "epsilon f32"},
                                      forwardFields());
const Kernel residualLayernormKernel =
    kernel("residual_layernorm", residualLayernorm,
           {"x (N, C)", "delta (N, C)", "gamma (C)", "beta (C)", "sum (N, C), x + delta", "out (N, C)", "mean (N) f32",
            "rstd (N) f32, 1 / √(variance + epsilon)", "epsilon f32"},
           forwardFields());
const Kernel layernormBackwardKernel = kernel(
    "layernorm_backward", layernormBackward,
    {"dout (N, C)", "x (N, C)", "gamma (C)", "mean (N) f32, the forward pass's", "rstd (N) f32, the forward pass's",
     "residual (N, C), read with separate_residual", "dx (N, C)", "dgamma (P, C) f32, a partial sum of each program",
     "dbeta (P, C) f32, a partial sum of each program", "epsilon f32, read with eps_outside_sqrt"},
    backwardFields());

//===-- Configs -------------------------------------------------------------------------------------------------===//

/// On a GPU, a warp has one row or several (blocks.h), and an SM has as many programs as its registers permit.
LayerNormConfig pickLayerNorm(const Target &target, int64_t C, Type type) {
  const int ctas = type != f32 && C <= tiling.narrowC ? tiling.narrowCtas : C <= tiling.wideC ? tiling.wideCtas : 0;
  return {.rows = pickWholeRows(target, tiling.cpuRows, C),
          .minCtasPerSm = target.visit([](const CpuFacts &) { return 0; }, [=](const GpuFacts &) { return ctas; })};
}

/// On a GPU, there is one program for each CTA that all SMs hold at a time. A tile has one row for each of the four
/// warps. Wider rows use tiles of two rows or of one, which the warps share: a lane holds four values for each element
/// of a row.
LayerNormBackwardConfig pickLayerNormBackward(const Target &target, int64_t N, int64_t C, Type type) {
  N = target.bucket(N);
  return target.visit(
      [](const CpuFacts &) { return LayerNormBackwardConfig{}; },
      [=](const GpuFacts &gpu) {
        const int block = C <= tiling.wideC ? tiling.rows : C <= tiling.widestC ? tiling.wideRows : tiling.widestRows;
        const int ctas = C <= tiling.narrowC && type != f32 ? tiling.narrowBackwardCtas : tiling.backwardCtas;
        const int64_t share = cdiv(cdiv(N, int64_t{ctas} * gpu.sms), block) * block;
        const int64_t rows = std::clamp(share, tiling.minRowsAProgram, tiling.maxRowsAProgram);
        return LayerNormBackwardConfig{.block = block, .rows = static_cast<int>(rows), .minCtasPerSm = ctas};
      });
}

//===-- Plans ---------------------------------------------------------------------------------------------------===//

/// The tensor as an operand if LayerNorm is affine, otherwise no operand.
static Operand ifAffine(const LayerNormOptions &options, const TensorRef &tensor) {
  return options.affine ? Operand(tensor) : Operand();
}

/// Throws Error unless ε ≥ 0, and ddof is 0 or 1 and below the width.
static void expectOptions(const char *plan, const TensorRef &x, const LayerNormOptions &options) {
  if (!(options.epsilon >= 0))
    throw Error("'" + std::string(plan) + "': expected 'epsilon' to be at least 0, but got " +
                std::to_string(options.epsilon));
  if (options.ddof < 0 || options.ddof > 1 || options.ddof >= x.extents[1])
    throw Error("'" + std::string(plan) + "': expected 'ddof' to be 0 or 1 and below the width, but got " +
                std::to_string(options.ddof) + " with a width of " + std::to_string(x.extents[1]));
}

/// The config to launch with: the given or the picked one, and the options.
static LayerNormConfig choose(const Target &target, const TensorRef &x, const LayerNormOptions &options,
                              const std::optional<LayerNormConfig> &config) {
  LayerNormConfig chosen = config.value_or(pickLayerNorm(target, x.extents[1], x.type));
  chosen.ddof = options.ddof;
  chosen.epsOutsideSqrt = options.epsOutsideSqrt;
  chosen.epsIsZero = options.epsilon == 0;
  chosen.affine = options.affine;
  return chosen;
}

Plan planLayerNorm(const Target &target, const TensorRef &x, const TensorRef &gamma, const TensorRef &beta,
                   const TensorRef &out, const TensorRef &mean, const TensorRef &rstd, const LayerNormOptions &options,
                   const std::optional<LayerNormConfig> &config) {
  checkOperands(layernormKernel, {x, ifAffine(options, gamma), ifAffine(options, beta), out, mean, rstd});
  expectOptions("layernorm", x, options);
  const LayerNormConfig chosen = choose(target, x, options, config);
  return {.launches = {makeLaunch(layernormKernel, chosen, programs(cdiv(x.extents[0], chosen.rows)),
                                  {x, gamma, beta, out, target.varying(mean), target.varying(rstd), options.epsilon})}};
}

Plan planResidualLayerNorm(const Target &target, const TensorRef &x, const TensorRef &delta, const TensorRef &gamma,
                           const TensorRef &beta, const TensorRef &sum, const TensorRef &out, const TensorRef &mean,
                           const TensorRef &rstd, const LayerNormOptions &options,
                           const std::optional<LayerNormConfig> &config) {
  checkOperands(residualLayernormKernel,
                {x, delta, ifAffine(options, gamma), ifAffine(options, beta), sum, out, mean, rstd});
  expectOptions("residual_layernorm", x, options);
  const LayerNormConfig chosen = choose(target, x, options, config);
  return {.launches = {makeLaunch(
              residualLayernormKernel, chosen, programs(cdiv(x.extents[0], chosen.rows)),
              {x, delta, gamma, beta, sum, out, target.varying(mean), target.varying(rstd), options.epsilon})}};
}

Plan planLayerNormBackward(const Target &target, const TensorRef &dout, const TensorRef &x, const TensorRef &gamma,
                           const TensorRef &mean, const TensorRef &rstd, const TensorRef &dx, const TensorRef &dgamma,
                           const TensorRef &dbeta, LayerNormAccumulate accumulate, const LayerNormOptions &options,
                           const std::optional<LayerNormBackwardConfig> &config) {
  const char *plan = "layernorm_backward";
  checkOperands(layernormBackwardKernel, {{}, x}); // names the extents by x
  expectShape(plan, "dout", dout, x.extents);
  checkOperands(layernormBackwardKernel, {dout, x, ifAffine(options, gamma), mean, rstd, accumulate.residual, dx});
  expectOptions(plan, x, options);
  if (options.affine) {
    expectShape(plan, "dgamma", dgamma, gamma.extents);
    expectShape(plan, "dbeta", dbeta, gamma.extents);
  }
  LayerNormBackwardConfig chosen = config.value_or(pickLayerNormBackward(target, x.extents[0], x.extents[1], x.type));
  if (chosen.rows % chosen.block != 0)
    throw Error("'layernorm_backward': expected 'rows' to be a multiple of 'block', but got " +
                std::to_string(chosen.rows) + " and " + std::to_string(chosen.block));

  // Each program writes one partial row. The second launch adds these rows in the order of the programs.
  const int64_t C = x.extents[1], P = cdiv(x.extents[0], chosen.rows), bytes = target.partStride(P) * C * bytesOf(f32);
  chosen.accumulate = accumulate.dx;
  chosen.separateResidual = accumulate.residual && accumulate.residual->data != dx.data;
  chosen.ddof = options.ddof;
  chosen.epsOutsideSqrt = options.epsOutsideSqrt && options.epsilon > 0;
  chosen.affine = options.affine;
  if (accumulate.parts)
    expectShape(plan, "parts", *accumulate.parts, {2, P, C});
  const auto partialSums = [&](int which) {
    return accumulate.parts ? Arg(accumulate.parts->select(0, which)) : Arg::workspace(which * bytes, f32, {P, C});
  };
  Launch rows = makeLaunch(layernormBackwardKernel, chosen, programs(P),
                           {dout, x, gamma, target.varying(mean), target.varying(rstd),
                            accumulate.residual.value_or(dx), dx, partialSums(0), partialSums(1), options.epsilon});
  Plan backward = {.launches = {rows}, .workspaceBytes = accumulate.parts ? 0 : 2 * bytes};
  if (!options.affine || accumulate.parts)
    return backward;
  for (Launch &launch :
       launchSums(target, {Arg::workspace(0, f32, {P, 1, C}), dgamma.reshape({1, C})},
                  {Arg::workspace(bytes, f32, {P, 1, C}), dbeta.reshape({1, C})}, accumulate.parameters))
    backward.launches.push_back(std::move(launch));
  return backward;
}

int64_t layerNormParts(const Target &target, int64_t N, int64_t C, Type type) {
  return cdiv(N, pickLayerNormBackward(target, N, C, type).rows);
}

std::vector<Launch> launchLayerNormSums(const Target &target, const TensorRef &parts, const TensorRef &dgamma,
                                        const TensorRef &dbeta, bool accumulate) {
  const int64_t P = parts.extents[1], C = parts.extents[2];
  const auto partialSum = [&](int which, const TensorRef &out) {
    return PartialSum{parts.select(0, which).reshape({P, 1, C}), out.reshape({1, C})};
  };
  return launchSums(target, partialSum(0, dgamma), partialSum(1, dbeta), accumulate);
}

} // namespace kiln
