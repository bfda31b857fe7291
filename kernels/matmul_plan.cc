// Plans of the matrix products: shapes checked, tile sizes chosen, K split where a product has too few tiles.

#include "kernels/expect.h"
#include "kernels/matmul_pick.h"
#include "kernels/sum.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

namespace kiln {

/// a rounded up to a multiple of b.
static int64_t roundUp(int64_t a, int64_t b) { return cdiv(a, b) * b; }

/// What a CPU core does in a cycle, and the cycles that the rest takes. Estimates: they rank tiles of a product, they
/// do not predict times.
struct CpuRates {
  double multiplyAdds; // in a cycle
  double b;            // to fetch and pack an element of B
  double a, turnedA;   // to fetch one of A; to pack it, too, when it is read by columns
  double sum;          // for each sum in each step of bk
};

/// Of cores with AVX-512, and with AMX, which packs B while it multiplies. An f16 A is always copied, and widened.
static CpuRates ratesOf(const CpuFacts &cpu, Type type) {
  if (cpu.tiles && (type == bf16 || type == i8))
    return {.multiplyAdds = 230, .b = 0.1, .a = 0.1, .turnedA = 0.4, .sum = 0.1};
  return {.multiplyAdds = 27, .b = 0.5, .a = type == f16 ? 0.9 : 0.4, .turnedA = 1.0, .sum = 0.2};
}

/// Modelled cycles of one core for a tile of bm × bn sums of length K.
static double tileCycles(const CpuRates &rates, const MatmulConfig &c, int64_t bm, int64_t bn, int64_t K) {
  const double sums = static_cast<double>(bm) * bn;
  const double fetched = rates.b * bn + (c.ta ? rates.turnedA : rates.a) * bm;
  return sums * K / rates.multiplyAdds + K * fetched + rates.sum * sums * (cdiv(K, c.bk) + 1);
}

/// Modelled cycles of the product on `cores`: tiles in turn, the last ones no larger than what is left of the matrix.
static double productCycles(const CpuRates &rates, const MatmulConfig &c, int64_t M, int64_t N, int64_t K,
                            int64_t cores) {
  // All tiles are alike but those of the last row and of the last column: no loop, for there may be billions.
  const int64_t rows = cdiv(M, c.bm), columns = cdiv(N, c.bn), tiles = rows * columns;
  if (tiles == 0)
    return 0;
  const int64_t lastM = M - (rows - 1) * c.bm, lastN = std::min<int64_t>(c.bn, roundUp(N - (columns - 1) * c.bn, 32));
  const auto across = [&](int64_t bm) {
    return static_cast<double>(columns - 1) * tileCycles(rates, c, bm, c.bn, K) + tileCycles(rates, c, bm, lastN, K);
  };
  const double total = static_cast<double>(rows - 1) * across(c.bm) + across(lastM);
  const double largest = tileCycles(rates, c, std::min<int64_t>(c.bm, M), std::min<int64_t>(c.bn, roundUp(N, 32)), K);
  return tiles <= 4 * cores ? largest * cdiv(tiles, cores) : total / cores + largest / 2;
}

/// About `size`, a multiple of `unit`: what cuts `extent` into equal parts, so that no sliver is left at its end.
static int64_t evenly(int64_t extent, int64_t size, int64_t unit) {
  const int64_t parts = std::max<int64_t>(1, cdiv(extent, size + unit));
  return roundUp(std::max<int64_t>(1, cdiv(extent, parts)), unit);
}

/// The tile that the model finds fastest among those whose left operand and sums fit the second-level cache. Wide tiles
/// pay where they share the packing of a left operand that is read by columns or widened, or read a left operand once.
/// Only bk, which is the same for all, decides the order of a sum: the choice never shows in a result. A step of i8 is
/// four terms; one of AMX is so short that sums had better not leave its tiles: then bk is long, in whole steps.
static void pickCpuTile(const CpuFacts &cpu, int64_t M, int64_t N, int64_t K, Type type, MatmulConfig &config) {
  const bool onTiles = cpu.tiles && (type == bf16 || type == i8);
  config.bk = evenly(K, onTiles || type == i8 ? 1024 : 256, onTiles ? 64 : 16);
  // Up to four rows by a turned B, such as a table of tokens: its rows lie as they are added, and need not be turned.
  // They are read a cache line after the other: for one row all of a row of B, where sums of that length are few enough
  // to compile, for more as much as is at hand until each has been multiplied by it.
  if (M <= 4 && config.tb && type != i8) {
    constexpr int64_t line = 64;
    const auto side = static_cast<int>(line / bytesOf(type));
    const int64_t longest = M <= 1 ? 768 : 256;
    config.bm = static_cast<int>(std::max<int64_t>(M, 1));
    config.bn = static_cast<int>(std::clamp<int64_t>(N / std::max(1, cpu.cores) / 16 * 16, 16, 64));
    config.kUnroll = side;
    config.bk = static_cast<int>(std::clamp<int64_t>(roundUp(K, side), side, longest));
    return;
  }
  // Few rows otherwise: each row of B is multiplied by one number of each and added to the sums, several in turn while
  // these are at hand. Nothing is packed, and long pieces of B's rows are read soonest.
  if (M <= 4 && !config.ta && !config.tb && type != i8) {
    constexpr int64_t longest = 4096;
    config.bm = static_cast<int>(std::max<int64_t>(M, 1));
    config.bn =
        static_cast<int>(evenly(N, std::clamp<int64_t>(N / std::max(1, cpu.cores), 64, longest / config.bm), 32));
    config.kUnroll = 1;
    config.bk = M <= 2 ? 8 : 4;
    return;
  }
  // Fewer rows than are multiplied at a time: B is read once, which takes all the time there is. Long pieces of its
  // rows are read soonest, as long as every core has some.
  if (M < 8) {
    config.bm = static_cast<int>(std::max<int64_t>(M, 1));
    config.bn = evenly(N, std::clamp<int64_t>(N / std::max(1, cpu.cores), 64, 384), 32);
    return;
  }
  const CpuRates rates = ratesOf(cpu, type);
  const int64_t held = type == f16 ? bytesOf(f32) : bytesOf(type); // f16 is widened into memory of its own
  double best = 0;
  for (int64_t bm : {64, 128, 256, 512}) {
    if (bm > 256 && !onTiles)
      break;
    for (int64_t bn : {64, 128, 192, 256, 384, 768}) {
      if (bn > 384 && bn < N && !config.ta && type != f16)
        break;
      MatmulConfig tile = config;
      tile.bm = evenly(M, bm, onTiles ? 32 : 8);
      tile.bn = evenly(N, bn, 32);
      const int64_t bytes = tile.bm * (held * tile.bk + 4 * static_cast<int64_t>(tile.bn));
      const double cycles = productCycles(rates, tile, M, N, K, std::max(1, cpu.cores));
      const bool fits = bytes <= cpu.l2Bytes * 85 / 100 || (bm == 64 && bn == 64);
      if (fits && (best == 0 || cycles < best)) {
        best = cycles;
        config = tile;
      }
    }
  }
}

MatmulConfig pickMatmul(const Target &target, Layout layout, int64_t M, int64_t N, int64_t K, Type type,
                        Epilogue epilogue) {
  int64_t &rows = layout == Layout::tn ? K : M; // of what a layer is given: the others are its widths
  rows = target.bucket(rows);
  MatmulConfig config;
  config.precision = target.precisionOf(type);
  config.ta = layout == Layout::tn;
  config.tb = layout == Layout::nt;
  target.visit([&](const CpuFacts &cpu) { pickCpuTile(cpu, M, N, K, type, config); },
               [&](const GpuFacts &gpu) {
                 const bool isExact = type == f32 && config.precision == Precision::ieee; // no work for tensor cores
                 if (M <= mostFewRows && layout != Layout::tn && isExact)
                   pickFewRows(gpu, {M, N, K, type}, config);
                 else
                   pickGpuTile(gpu, {M, N, K, type, epilogue}, config);
               });
  return config;
}

/// Extents of a product, checked against its operands, and their type.
struct Extents {
  int64_t M, N, K;
  Type type;
};

static Extents expectProduct(const char *plan, Layout layout, const TensorRef &a, const TensorRef &b,
                             const TensorRef &c, bool ofIntegers = false) {
  expectRank(plan, "a", a, 2);
  expectRank(plan, "b", b, 2);
  const bool ta = layout == Layout::tn, tb = layout == Layout::nt;
  const int64_t M = a.extents[ta], K = a.extents[!ta], N = b.extents[!tb];
  expectShape(plan, "b", b, tb ? Shape{N, K} : Shape{K, N});
  expectShape(plan, "c", c, {M, N});
  ofIntegers ? expectType(plan, "a", a, {f32, bf16, f16, i8}) : expectFloat(plan, "a", a);
  expectType(plan, "b", b, {a.type});
  a.type == i8 ? expectType(plan, "c", c, {i32}) : expectFloat(plan, "c", c);
  return {M, N, K, a.type};
}

/// That of an activation whose result `type` holds, of dropout and of a residual.
static Epilogue epilogueOf(Activation activation, Type type, DropoutMode drop,
                           const std::optional<TensorRef> &residual = {}) {
  if (drop == DropoutMode::random)
    return Epilogue::chances;
  const bool isAccurate = activation == Activation::gelu_erf || (activation != Activation::none && type == f32);
  if (isAccurate || (residual && residual->type == f32))
    return Epilogue::heavy;
  return activation != Activation::none ? Epilogue::activated : residual ? Epilogue::added : Epilogue::light;
}

/// The config to launch with: the caller's tile sizes or pick()'s, the layout's transpositions.
static MatmulConfig choose(const Target &target, Layout layout, Extents e, const std::optional<MatmulConfig> &config,
                           Epilogue epilogue = Epilogue::light) {
  MatmulConfig chosen = config ? *config : pickMatmul(target, layout, e.M, e.N, e.K, e.type, epilogue);
  chosen.ta = layout == Layout::tn;
  chosen.tb = layout == Layout::nt;
  chosen.accumulate = epilogue == Epilogue::accumulate;
  chosen.storePreact = chosen.storeBiasGrad = false;
  if (chosen.kUnroll != 0 && (layout == Layout::tn || e.type == i8))
    throw Error("'matmul': 'k_unroll' must be 0 for i8 operands or a transposed 'a', but got " +
                std::to_string(chosen.kUnroll));
  if (chosen.kUnroll < 0 || (chosen.kUnroll > 0 && chosen.bk % chosen.kUnroll != 0))
    throw Error("'matmul': expected 'k_unroll' to divide 'bk', but got " + std::to_string(chosen.kUnroll) + " and " +
                std::to_string(chosen.bk));
  return chosen;
}

/// One launch over the tiles of C.
static Plan tiles(const Kernel &kernel, Extents e, const MatmulConfig &config, std::vector<Arg> args) {
  return {.launches = {{&kernel, textOf(kernel.fields, config), programs(cdiv(e.M, config.bm), cdiv(e.N, config.bn)),
                        std::move(args),
                        2.0 * static_cast<double>(e.M) * static_cast<double>(e.N) * static_cast<double>(e.K)}}};
}

/// Rows of tiles of a band. So many programs as run at once on a GPU read the rows of A of a band's height and the
/// columns of B of what is left: the fewest bytes where both are about as much. A band's height divides the rows'.
static int64_t bandOf(const GpuFacts &gpu, const MatmulConfig &config, int64_t rows) {
  const double wave = gpu.sms * (config.warps <= 4 ? 2 : 1);
  const double wanted = std::sqrt(wave * config.bn / config.bm);
  int64_t best = rows;
  for (int64_t band = 1; band <= std::min<int64_t>(rows, 64); ++band) {
    const auto farther = [&](int64_t at) { return std::abs(std::log(static_cast<double>(at) / wanted)); };
    if (rows % band == 0 && rows / band <= mostBands && farther(band) < farther(best))
      best = band;
  }
  return best;
}

/// One launch over the tiles of C, in bands of rows.
static Plan tiles(const Target &target, const Kernel &kernel, Extents e, const MatmulConfig &config,
                  std::vector<Arg> args) {
  Plan plan = tiles(kernel, e, config, std::move(args));
  Grid &grid = plan.launches[0].grid;
  target.visit([](const CpuFacts &) {},
               [&](const GpuFacts &gpu) {
                 const int64_t band = bandOf(gpu, config, grid[0]);
                 grid = programs(band, grid[1], grid[0] / std::max<int64_t>(1, band));
               });
  return plan;
}

Plan planMatmul(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b, const TensorRef &c,
                bool accumulate, const std::optional<MatmulConfig> &config) {
  const Extents e = expectProduct("matmul", layout, a, b, c, /*ofIntegers=*/true);
  return tiles(target, matmulKernel, e,
               choose(target, layout, e, config, accumulate ? Epilogue::accumulate : Epilogue::light), {a, b, c});
}

Plan planMatmulBias(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b, const TensorRef &bias,
                    const TensorRef &c, const std::optional<MatmulConfig> &config) {
  const Extents e = expectProduct("matmul_bias", layout, a, b, c);
  expectShape("matmul_bias", "bias", bias, {e.N});
  return tiles(target, matmulBiasKernel, e, choose(target, layout, e, config), {a, b, bias, c});
}

Plan planMatmulGelu(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b, const TensorRef &bias,
                    const std::optional<TensorRef> &preact, const TensorRef &c,
                    const std::optional<MatmulConfig> &config) {
  const Extents e = expectProduct("matmul_gelu", layout, a, b, c);
  expectShape("matmul_gelu", "bias", bias, {e.N});
  if (preact)
    expectShape("matmul_gelu", "preact", *preact, {e.M, e.N});
  MatmulConfig chosen = choose(target, layout, e, config, epilogueOf(Activation::gelu, c.type, DropoutMode::off));
  chosen.storePreact = preact.has_value();
  return tiles(target, matmulGeluKernel, e, chosen, {a, b, bias, preact.value_or(c), c});
}

Plan planMatmulResidual(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b,
                        const TensorRef &bias, const TensorRef &residual, const TensorRef &c,
                        const std::optional<MatmulConfig> &config) {
  const Extents e = expectProduct("matmul_residual", layout, a, b, c);
  expectShape("matmul_residual", "bias", bias, {e.N});
  expectShape("matmul_residual", "residual", residual, {e.M, e.N});
  const Epilogue epilogue = epilogueOf(Activation::none, c.type, DropoutMode::off, residual);
  return tiles(target, matmulResidualKernel, e, choose(target, layout, e, config, epilogue), {a, b, bias, residual, c});
}

Plan planMatmulGeluBackward(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b,
                            const TensorRef &preact, const TensorRef &c, const std::optional<MatmulConfig> &config) {
  const Extents e = expectProduct("matmul_gelu_backward", layout, a, b, c);
  expectShape("matmul_gelu_backward", "preact", preact, {e.M, e.N});
  return tiles(target, matmulGeluBackwardKernel, e,
               choose(target, layout, e, config, epilogueOf(Activation::gelu, c.type, DropoutMode::off)),
               {a, b, preact, c});
}

Plan planLinear(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b, const TensorRef &c,
                const LinearEpilogue &epilogue, const std::optional<MatmulConfig> &config) {
  const auto &[bias, activation, preact, dropout, residual] = epilogue;
  const DropoutMode drop = dropoutModeOf(dropout);
  if (drop == DropoutMode::off && activation == Activation::none && !preact) {
    if (!bias && !residual)
      return planMatmul(target, layout, a, b, c, false, config);
    if (bias)
      return residual ? planMatmulResidual(target, layout, a, b, *bias, *residual, c, config)
                      : planMatmulBias(target, layout, a, b, *bias, c, config);
  }
  if (drop == DropoutMode::off && activation == Activation::gelu && bias && !residual)
    return planMatmulGelu(target, layout, a, b, *bias, preact, c, config);

  const char *plan = "matmul_linear";
  const Extents e = expectProduct(plan, layout, a, b, c);
  if (bias)
    expectShape(plan, "bias", *bias, {e.N});
  for (const auto &[name, matrix] : {std::pair("preact", &preact), std::pair("residual", &residual)})
    if (*matrix)
      expectShape(plan, name, **matrix, {e.M, e.N});
  if (dropout)
    expectDropout(plan, *dropout, e.M);
  MatmulConfig chosen = choose(target, layout, e, config, epilogueOf(activation, c.type, drop, residual));
  chosen.storePreact = preact.has_value();
  chosen.biased = bias.has_value();
  chosen.residual = residual.has_value();
  chosen.activation = activation;
  chosen.drop = drop;
  std::vector<Arg> args = {a, b, bias.value_or(c), preact.value_or(c), residual.value_or(c), c};
  appendArgs(args, dropout, c);
  return tiles(target, matmulLinearKernel, e, chosen, std::move(args));
}

Plan planLinearBackward(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b, const TensorRef &c,
                        const LinearSlope &slope, const std::optional<MatmulConfig> &config) {
  const auto &[activation, from, dropout] = slope;
  const DropoutMode drop = dropoutModeOf(dropout);
  if (drop == DropoutMode::off && activation == Activation::none)
    return planMatmul(target, layout, a, b, c, false, config);
  if (drop == DropoutMode::off && activation == Activation::gelu && from)
    return planMatmulGeluBackward(target, layout, a, b, *from, c, config);

  const char *plan = "matmul_linear_backward";
  const Extents e = expectProduct(plan, layout, a, b, c);
  if (activation != Activation::none) {
    if (!from)
      throw Error(
          "'matmul_linear_backward': an activation requires 'from', the values at which its derivative is taken");
    expectShape(plan, "from", *from, {e.M, e.N});
  }
  if (dropout)
    expectDropout(plan, *dropout, e.M);
  MatmulConfig chosen = choose(target, layout, e, config, epilogueOf(activation, c.type, drop));
  chosen.activation = activation;
  chosen.drop = drop == DropoutMode::random && isKnownByResult(activation) ? DropoutMode::scale_only
                                                                           : drop; // a result says what is kept
  std::vector<Arg> args = {a, b, from.value_or(c), c};
  appendArgs(args, dropout, c);
  return tiles(target, matmulLinearBackwardKernel, e, chosen, std::move(args));
}

/// The shortest part of K that a program sums.
static constexpr int64_t shortestPart = 1024;

/// Rows a program sums, 0 for all.
static int64_t rowsOf(const Extents &e, int64_t parts, const MatmulConfig &config) {
  return parts > 1 ? roundUp(cdiv(e.K, parts), config.bk) : 0;
}

/// Splits K. On a CPU where fewer than 8 tiles of 256 × 128 would leave cores idle: a property of the shape alone, so
/// that results never depend on the machine's threads. On a GPU into as many parts, with the tile that suits them, as
/// the model finds fastest for all of the products of one K.
static void pickSplit(const Target &target, const std::vector<Extents> &all, Epilogue epilogue, MatmulConfig &config) {
  const Extents &e = all.front();
  const int64_t most = e.K / shortestPart;
  target.visit(
      [&](const CpuFacts &) {
        constexpr int64_t enough = 8;
        const int64_t tiles = cdiv(e.M, 256) * cdiv(e.N, 128);
        config.split = rowsOf(e, std::min(cdiv(enough, std::max<int64_t>(tiles, 1)), most), config);
      },
      [&](const GpuFacts &gpu) {
        Product product = {e.M, e.N, e.K, e.type, epilogue};
        for (size_t i = 1; i < all.size(); ++i)
          product.beside.emplace_back(all[i].M, all[i].N);
        double best = 0;
        for (int64_t parts = 1; parts <= std::clamp<int64_t>(most, 1, 32); ++parts) {
          MatmulConfig tile = config;
          product.parts = parts;
          const double cycles = pickGpuTile(gpu, product, tile);
          tile.split = rowsOf(e, parts, tile);
          if (best == 0 || cycles < best) {
            best = cycles;
            config = tile;
          }
        }
      });
}

/// A (S, …) view of one part: the tensor itself with a leading dimension of extent 1.
static TensorRef onePart(TensorRef tensor) {
  tensor.extents.insert(tensor.extents.begin(), 1);
  tensor.strides.insert(tensor.strides.begin(), 0);
  return tensor;
}

static constexpr const char *weightPlan = "weight_gradient";

/// Partial sums of each part, to add to the plan's launches, and what adds these in order, which alone may be added to
/// something.
static void appendParts(const Target &target, const WeightGradient &one, const Extents &e, int64_t parts,
                        bool accumulate, const MatmulConfig &config, Plan &split, std::vector<Launch> &sums) {
  const int64_t begin = split.workspaceBytes, columns = begin + parts * e.M * e.N * bytesOf(f32);
  const Arg dw = Arg::workspace(begin, f32, {parts, e.M, e.N});
  Plan plan = tiles(weightGradientKernel, e, config, {one.x, one.dy, dw, Arg::workspace(columns, f32, {parts, e.N})});
  plan.launches[0].grid[2] = parts;
  split.launches.push_back(plan.launches[0]);
  split.workspaceBytes = columns + parts * e.N * bytesOf(f32);
  const PartialSum sum = {dw, one.dw};
  if (!one.db)
    return sums.push_back(launchSum(target, sum.partials, sum.out, accumulate));
  for (Launch &launch :
       launchSums(target, sum, {Arg::workspace(columns, f32, {parts, 1, e.N}), one.db->reshape({1, e.N})}, accumulate))
    sums.push_back(std::move(launch));
}

/// The launches for weights of one K, or of one bucket, whose types are the same.
static Plan planAlike(const Target &target, const std::vector<WeightGradient> &all, bool accumulate,
                      const std::optional<MatmulConfig> &config) {
  std::vector<Extents> extents;
  for (const WeightGradient &one : all) {
    extents.push_back(expectProduct(weightPlan, Layout::tn, one.x, one.dy, one.dw));
    if (one.db)
      expectShape(weightPlan, "db", *one.db, {extents.back().N});
  }
  const int64_t K = target.bucket(extents.front().K);
  const Epilogue epilogue = accumulate ? Epilogue::accumulate : Epilogue::light;
  MatmulConfig chosen = choose(target, Layout::tn, extents.front(), config, epilogue);
  std::vector<Extents> seen =
      extents; // of a bucket of rows: parts that begin behind the last of them are sums of nothing
  for (Extents &one : seen)
    one.K = K;
  if (!config)
    pickSplit(target, seen, epilogue, chosen);
  if (chosen.split % chosen.bk != 0)
    throw Error("'weight_gradient': expected 'split' to be a multiple of 'bk', but got " +
                std::to_string(chosen.split) + " and " + std::to_string(chosen.bk));
  chosen.storeBiasGrad = all.front().db.has_value();

  // All of K in one program: straight into dw and db.
  const int64_t parts = chosen.split > 0 ? cdiv(K, chosen.split) : 1;
  Plan plan;
  if (parts == 1) {
    chosen.split = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      const auto &[x, dy, dw, db] = all[i];
      plan +=
          tiles(weightGradientKernel, extents[i], chosen, {x, dy, onePart(dw), onePart(db.value_or(x.select(0, 0)))});
    }
    plan.launches = grouped(plan.launches);
    return plan;
  }
  chosen.accumulate = false;
  std::vector<Launch> sums;
  for (size_t i = 0; i < all.size(); ++i)
    appendParts(target, all[i], extents[i], parts, accumulate, chosen, plan, sums);
  plan.launches = grouped(plan.launches);
  plan += {.launches = grouped(sums)};
  return plan;
}

Plan planWeightGradients(const Target &target, const std::vector<WeightGradient> &all, bool accumulate,
                         const std::optional<MatmulConfig> &config) {
  const bool together = target.visit([](const CpuFacts &) { return false; }, [](const GpuFacts &) { return true; });
  const auto areAlike = [&](const WeightGradient &a, const WeightGradient &b) {
    const auto typesOf = [](const WeightGradient &one) {
      return std::tuple(one.x.type, one.dw.type, one.db ? std::optional(one.db->type) : std::nullopt);
    };
    return a.x.rank() == 2 && b.x.rank() == 2 && target.bucket(a.x.extents[0]) == target.bucket(b.x.extents[0]) &&
           typesOf(a) == typesOf(b);
  };
  std::vector<std::vector<WeightGradient>> groups;
  for (const WeightGradient &one : all) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const std::vector<WeightGradient> &to) {
      return together && areAlike(to.front(), one);
    });
    group == groups.end() ? groups.push_back({one}) : group->push_back(one);
  }
  Plan plan;
  for (const std::vector<WeightGradient> &group : groups)
    plan += planAlike(target, group, accumulate, config);
  return plan;
}

Plan planWeightGradient(const Target &target, const TensorRef &x, const TensorRef &dy, const TensorRef &dw,
                        const std::optional<TensorRef> &db, bool accumulate,
                        const std::optional<MatmulConfig> &config) {
  return planWeightGradients(target, {{x, dy, dw, db}}, accumulate, config);
}

} // namespace kiln
