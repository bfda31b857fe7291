// Plans of the matrix products: checks of shapes and types, the config of a problem, and the launches. matmul_cpu.cc
// and matmul_gpu.cc choose tile sizes. Split-K: if a weight gradient has too few tiles for the machine, several
// programs share the K of a tile. A second launch adds their sums in order.

#include "kernels/matmul_pick.h"
#include "kernels/operands.h"
#include "kernels/sum.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

namespace kiln {

namespace {
/// Constants of split-K, of the order of programs, and of the choice of a kernel.
struct MatmulPlanLimits {
  int64_t shortestPart = 1024;       // rows of K that a program sums at least
  int64_t maxParts = 32;             // GPU: parts that the cost model compares
  int64_t enoughTiles = 8;           // CPU: tiles to aim for, a property of the shape and not of the cores
  int64_t bm = 256, bn = 128;        // CPU: rows and columns of these tiles
  int64_t maxBandRows = 64;          // GPU: row tiles of a band
  int smallWarps = 4, smallCtas = 2; // GPU: warps up to which an SM holds two CTAs
};
constexpr MatmulPlanLimits planLimits;

/// Extents of a product, checked against its operands, and their type.
struct Extents {
  int64_t M, N, K;
  Type type;
};
} // namespace

//===-- Checks and configs --------------------------------------------------------------------------------------===//

MatmulConfig pickMatmul(const Target &target, Layout layout, int64_t M, int64_t N, int64_t K, Type type,
                        Epilogue epilogue) {
  int64_t &rows = layout == Layout::tn ? K : M; // the extent that is not a width of the layer
  rows = target.bucket(rows);
  MatmulConfig config;
  config.precision = target.precisionOf(type);
  config.ta = layout == Layout::tn;
  config.tb = layout == Layout::nt;
  target.visit([&](const CpuFacts &cpu) { pickCpuTile(cpu, {M, N, K, type}, config); },
               [&](const GpuFacts &gpu) {
                 const bool isExact = type == f32 && config.precision == Precision::ieee; // no work for tensor cores
                 if (M <= maxFewRows && layout != Layout::tn && isExact)
                   pickFewRows(gpu, {M, N, K, type}, config);
                 else
                   pickGpuTile(gpu, {M, N, K, type, epilogue}, config);
               });
  return config;
}

/// Checks A, B and the operands that follow them in `kernel`.
static Extents expectProduct(const Kernel &kernel, Layout layout, const TensorRef &a, const TensorRef &b,
                             const std::vector<Operand> &others) {
  std::vector<Operand> operands = {a, b};
  operands[0].isTransposed = layout == Layout::tn;
  operands[1].isTransposed = layout == Layout::nt;
  operands.insert(operands.end(), others.begin(), others.end());
  const NamedExtents e = checkOperands(kernel, operands);
  return {e["M"], e["N"], e["K"], a.type};
}

/// The class of an epilogue with this activation, result type, dropout and residual.
static Epilogue classify(Activation activation, Type type, DropoutMode drop,
                         const std::optional<TensorRef> &residual = {}) {
  if (drop == DropoutMode::random)
    return Epilogue::dropout;
  const bool isAccurate = activation == Activation::gelu_erf || (activation != Activation::none && type == f32);
  if (isAccurate || (residual && residual->type == f32))
    return Epilogue::heavy;
  if (activation == Activation::none)
    return residual ? Epilogue::added : Epilogue::light;
  return residual ? Epilogue::activatedAndAdded : Epilogue::activated;
}

/// The config to launch with: the given or the picked tile sizes, and the layout's transpositions.
static MatmulConfig choose(const Target &target, Layout layout, Extents e, const std::optional<MatmulConfig> &config,
                           Epilogue epilogue = Epilogue::light) {
  MatmulConfig chosen = config ? *config : pickMatmul(target, layout, e.M, e.N, e.K, e.type, epilogue);
  chosen.ta = layout == Layout::tn;
  chosen.tb = layout == Layout::nt;
  chosen.accumulate = epilogue == Epilogue::accumulate;
  chosen.storePreact = chosen.storeBiasGrad = false;
  if (chosen.groupM < 0)
    throw Error("'matmul': expected 'group_m' of at least 0, but got " + std::to_string(chosen.groupM));
  if (chosen.kUnroll != 0 && (layout == Layout::tn || e.type == i8))
    throw Error("'matmul': 'k_unroll' must be 0 for i8 operands or a transposed 'a', but got " +
                std::to_string(chosen.kUnroll));
  if (chosen.kUnroll < 0 || (chosen.kUnroll > 0 && chosen.bk % chosen.kUnroll != 0))
    throw Error("'matmul': expected 'k_unroll' to divide 'bk', but got " + std::to_string(chosen.kUnroll) + " and " +
                std::to_string(chosen.bk));
  return chosen;
}

//===-- Launches ------------------------------------------------------------------------------------------------===//

/// One launch over the tiles of C.
static Plan planTiles(const Kernel &kernel, Extents e, const MatmulConfig &config, std::vector<Arg> args) {
  return {
      .launches = {makeLaunch(kernel, config, programs(cdiv(e.M, config.bm), cdiv(e.N, config.bn)), std::move(args),
                              2.0 * static_cast<double>(e.M) * static_cast<double>(e.N) * static_cast<double>(e.K))}};
}

/// Row tiles of a band. Concurrent CTAs of a GPU read the rows of A of a band, and as many columns of B as they reach.
/// That is the fewest bytes if both are about equal. The height of a band divides the number of row tiles.
static int64_t bandHeight(const GpuFacts &gpu, const MatmulConfig &config, int64_t rows) {
  const double wave = gpu.sms * (config.warps <= planLimits.smallWarps ? planLimits.smallCtas : 1); // CTAs at a time
  const double wanted = std::sqrt(wave * config.bn / config.bm);
  int64_t best = rows;
  for (int64_t band = 1; band <= std::min(rows, planLimits.maxBandRows); ++band) {
    const auto farther = [&](int64_t at) { return std::abs(std::log(static_cast<double>(at) / wanted)); };
    if (rows % band == 0 && rows / band <= maxBands && farther(band) < farther(best))
      best = band;
  }
  return best;
}

/// One launch over the tiles of `c`, in bands of row tiles on a GPU. Programs are persistent if the config says so, or
/// if that is faster and `mayPersist`. It must be false if the config is the caller's. It must also be false if the
/// kernel reads an (M, N) matrix or writes a wider one: results pass through shared memory in c's type.
static Plan planTiles(const Target &target, const Kernel &kernel, Extents e, MatmulConfig config, const TensorRef &c,
                      bool mayPersist, std::vector<Arg> args) {
  Grid grid = programs(cdiv(e.M, config.bm), cdiv(e.N, config.bn));
  const int64_t tiles = grid[0] * grid[1];
  target.visit([&](const CpuFacts &) { grid = config.groupM > 0 ? programs(tiles) : grid; },
               [&](const GpuFacts &gpu) {
                 const int64_t band = bandHeight(gpu, config, grid[0]);
                 if (config.groupM == 0 && mayPersist && !target.elastic &&
                     prefersPersistent(gpu, config, e.type, c.type, tiles))
                   config.groupM = band;
                 grid = config.groupM > 0 ? programs(std::min<int64_t>(tiles, gpu.sms))
                                          : programs(band, grid[1], grid[0] / std::max<int64_t>(1, band));
               });
  Plan plan = planTiles(kernel, e, config, std::move(args));
  plan.launches[0].grid = grid;
  return plan;
}

/// Whether the elements of `other` take more bytes than those of `c`.
static bool isWider(const std::optional<TensorRef> &other, const TensorRef &c) {
  return other && bytesOf(other->type) > bytesOf(c.type);
}

Plan planMatmul(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b, const TensorRef &c,
                bool accumulate, const std::optional<MatmulConfig> &config) {
  const Extents e = expectProduct(matmulKernel, layout, a, b, {c});
  if ((a.type == i8) != (c.type == i32))
    throw Error(std::string("'matmul': expected 'c' of type ") + (a.type == i8 ? "i32" : "f32 or bf16 or f16") +
                ", but got " + nameOf(c.type));
  return planTiles(target, matmulKernel, e,
                   choose(target, layout, e, config, accumulate ? Epilogue::accumulate : Epilogue::light), c,
                   !config && !accumulate, {a, b, c});
}

Plan planMatmulBias(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b, const TensorRef &bias,
                    const TensorRef &c, const std::optional<MatmulConfig> &config) {
  const Extents e = expectProduct(matmulBiasKernel, layout, a, b, {bias, c});
  return planTiles(target, matmulBiasKernel, e, choose(target, layout, e, config), c, !config, {a, b, bias, c});
}

Plan planMatmulGelu(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b, const TensorRef &bias,
                    const std::optional<TensorRef> &preact, const TensorRef &c,
                    const std::optional<MatmulConfig> &config) {
  const Extents e = expectProduct(matmulGeluKernel, layout, a, b, {bias, preact, c});
  MatmulConfig chosen = choose(target, layout, e, config, classify(Activation::gelu, c.type, DropoutMode::off));
  chosen.storePreact = preact.has_value();
  return planTiles(target, matmulGeluKernel, e, chosen, c, !config && !isWider(preact, c),
                   {a, b, bias, preact.value_or(c), c});
}

Plan planMatmulResidual(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b,
                        const TensorRef &bias, const TensorRef &residual, const TensorRef &c,
                        const std::optional<MatmulConfig> &config) {
  const Extents e = expectProduct(matmulResidualKernel, layout, a, b, {bias, residual, c});
  const Epilogue epilogue = classify(Activation::none, c.type, DropoutMode::off, residual);
  return planTiles(target, matmulResidualKernel, e, choose(target, layout, e, config, epilogue), c, false,
                   {a, b, bias, residual, c});
}

Plan planMatmulGeluBackward(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b,
                            const TensorRef &preact, const TensorRef &c, const std::optional<MatmulConfig> &config) {
  const Extents e = expectProduct(matmulGeluBackwardKernel, layout, a, b, {preact, c});
  return planTiles(target, matmulGeluBackwardKernel, e,
                   choose(target, layout, e, config, classify(Activation::gelu, c.type, DropoutMode::off)), c, false,
                   {a, b, preact, c});
}

Plan planLinear(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b, const TensorRef &c,
                const LinearEpilogue &epilogue, const std::optional<MatmulConfig> &config) {
  const auto &[bias, activation, preact, dropout, residual] = epilogue;
  const DropoutMode drop = chooseDropoutMode(dropout);
  if (drop == DropoutMode::off && activation == Activation::none && !preact) {
    if (!bias && !residual)
      return planMatmul(target, layout, a, b, c, false, config);
    if (bias)
      return residual ? planMatmulResidual(target, layout, a, b, *bias, *residual, c, config)
                      : planMatmulBias(target, layout, a, b, *bias, c, config);
  }
  if (drop == DropoutMode::off && activation == Activation::gelu && bias && !residual)
    return planMatmulGelu(target, layout, a, b, *bias, preact, c, config);

  const Extents e = expectProduct(matmulLinearKernel, layout, a, b, {bias, preact, residual, c});
  if (dropout)
    expectDropout("matmul_linear", *dropout, e.M);
  MatmulConfig chosen = choose(target, layout, e, config, classify(activation, c.type, drop, residual));
  chosen.storePreact = preact.has_value();
  chosen.biased = bias.has_value();
  chosen.residual = residual.has_value();
  chosen.activation = activation;
  chosen.dropout = drop;
  std::vector<Arg> args = {a, b, bias.value_or(c), preact.value_or(c), residual.value_or(c), c};
  appendArgs(args, dropout, c);
  return planTiles(target, matmulLinearKernel, e, chosen, c, !config && !residual && !isWider(preact, c),
                   std::move(args));
}

Plan planLinearBackward(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b, const TensorRef &c,
                        const LinearBackward &backward, const std::optional<MatmulConfig> &config) {
  const auto &[activation, from, dropout] = backward;
  const DropoutMode drop = chooseDropoutMode(dropout);
  if (drop == DropoutMode::off && activation == Activation::none)
    return planMatmul(target, layout, a, b, c, false, config);
  if (drop == DropoutMode::off && activation == Activation::gelu && from)
    return planMatmulGeluBackward(target, layout, a, b, *from, c, config);

  const bool isActivated = activation != Activation::none;
  if (isActivated && !from)
    throw Error("'matmul_linear_backward': an activation requires 'from', the values at which its derivative is taken");
  const Extents e =
      expectProduct(matmulLinearBackwardKernel, layout, a, b, {isActivated ? Operand(from) : Operand(), c});
  if (dropout)
    expectDropout("matmul_linear_backward", *dropout, e.M);
  MatmulConfig chosen = choose(target, layout, e, config, classify(activation, c.type, drop));
  chosen.activation = activation;
  chosen.dropout = drop == DropoutMode::random && isKnownByResult(activation) ? DropoutMode::scale_only
                                                                              : drop; // the result shows the mask
  std::vector<Arg> args = {a, b, from.value_or(c), c};
  appendArgs(args, dropout, c);
  return planTiles(target, matmulLinearBackwardKernel, e, chosen, c, !config && !from, std::move(args));
}

//===-- Weight gradients ----------------------------------------------------------------------------------------===//

/// `split`: rows of K that a program sums, in whole steps of BK; 0 for all.
static int64_t splitRows(const Extents &e, int64_t parts, const MatmulConfig &config) {
  return parts > 1 ? cdiv(cdiv(e.K, parts), config.bk) * config.bk : 0;
}

/// Splits K. On a CPU if there are few tiles: that depends on the shape alone, so results do not depend on the number
/// of threads. On a GPU into the number of parts, with a tile for them, that the cost model finds fastest for all
/// products of one K.
static void pickSplit(const Target &target, const std::vector<Extents> &all, Epilogue epilogue, MatmulConfig &config) {
  const Extents &e = all.front();
  const int64_t most = e.K / planLimits.shortestPart;
  target.visit(
      [&](const CpuFacts &) {
        const int64_t tiles = cdiv(e.M, planLimits.bm) * cdiv(e.N, planLimits.bn);
        config.split = splitRows(e, std::min(cdiv(planLimits.enoughTiles, std::max<int64_t>(tiles, 1)), most), config);
      },
      [&](const GpuFacts &gpu) {
        Product product = {e.M, e.N, e.K, e.type, epilogue};
        for (size_t i = 1; i < all.size(); ++i)
          product.others.emplace_back(all[i].M, all[i].N);
        double best = 0;
        for (int64_t parts = 1; parts <= std::clamp<int64_t>(most, 1, planLimits.maxParts); ++parts) {
          MatmulConfig tile = config;
          product.parts = parts;
          const double cycles = pickGpuTile(gpu, product, tile);
          tile.split = splitRows(e, parts, tile);
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

/// Appends the launch of the partial sums to `split`, and the launches that add them in order, and accumulate, to
/// `sums`.
static void appendParts(const Target &target, const WeightGradient &one, const Extents &e, int64_t parts,
                        bool accumulate, const MatmulConfig &config, Plan &split, std::vector<Launch> &sums) {
  const int64_t begin = split.workspaceBytes, columns = begin + parts * e.M * e.N * bytesOf(f32);
  const Arg dw = Arg::workspace(begin, f32, {parts, e.M, e.N});
  Plan plan =
      planTiles(weightGradientKernel, e, config, {one.x, one.dy, dw, Arg::workspace(columns, f32, {parts, e.N})});
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

/// The launches for weights whose K is equal or in one bucket, and whose types are equal.
static Plan planGroup(const Target &target, const std::vector<WeightGradient> &all, bool accumulate,
                      const std::optional<MatmulConfig> &config) {
  std::vector<Extents> extents;
  for (const auto &[x, dy, dw, db] : all) {
    std::vector<Operand> operands = {x, dy, dw, db};
    operands[2].isOnePart = operands[3].isOnePart = true;
    const NamedExtents e = checkOperands(weightGradientKernel, operands);
    extents.push_back({e["M"], e["N"], e["K"], x.type});
  }
  const int64_t K = target.bucket(extents.front().K);
  const Epilogue epilogue = accumulate ? Epilogue::accumulate : Epilogue::light;
  MatmulConfig chosen = choose(target, Layout::tn, extents.front(), config, epilogue);
  std::vector<Extents> bucketed = extents; // with a bucket of rows: parts beyond the last row are zeros
  for (Extents &one : bucketed)
    one.K = K;
  if (!config)
    pickSplit(target, bucketed, epilogue, chosen);
  if (chosen.split % chosen.bk != 0)
    throw Error("'weight_gradient': expected 'split' to be a multiple of 'bk', but got " +
                std::to_string(chosen.split) + " and " + std::to_string(chosen.bk));
  chosen.storeBiasGrad = all.front().db.has_value();

  // All of K in one program: directly to dw and db.
  const int64_t parts = chosen.split > 0 ? cdiv(K, chosen.split) : 1;
  Plan plan;
  if (parts == 1) {
    chosen.split = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      const auto &[x, dy, dw, db] = all[i];
      plan += planTiles(weightGradientKernel, extents[i], chosen,
                        {x, dy, onePart(dw), onePart(db.value_or(x.select(0, 0)))});
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
  const bool sharesLaunches =
      target.visit([](const CpuFacts &) { return false; }, [](const GpuFacts &) { return true; });
  const auto canShareLaunch = [&](const WeightGradient &a, const WeightGradient &b) {
    const auto listTypes = [](const WeightGradient &one) {
      return std::tuple(one.x.type, one.dw.type, one.db ? std::optional(one.db->type) : std::nullopt);
    };
    return a.x.rank() == 2 && b.x.rank() == 2 && target.bucket(a.x.extents[0]) == target.bucket(b.x.extents[0]) &&
           listTypes(a) == listTypes(b);
  };
  std::vector<std::vector<WeightGradient>> groups;
  for (const WeightGradient &one : all) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const std::vector<WeightGradient> &to) {
      return sharesLaunches && canShareLaunch(to.front(), one);
    });
    group == groups.end() ? groups.push_back({one}) : group->push_back(one);
  }
  Plan plan;
  for (const std::vector<WeightGradient> &group : groups)
    plan += planGroup(target, group, accumulate, config);
  return plan;
}

Plan planWeightGradient(const Target &target, const TensorRef &x, const TensorRef &dy, const TensorRef &dw,
                        const std::optional<TensorRef> &db, bool accumulate,
                        const std::optional<MatmulConfig> &config) {
  return planWeightGradients(target, {{x, dy, dw, db}}, accumulate, config);
}

} // namespace kiln
