// Ordered sums. Every output element is summed by one program, in order.

#include "kernels/sum.h"
#include "kernels/blocks.h"
#include "kernels/operands.h"

namespace kiln {

/// out (+)= Σ_p partials[p], from row m and column n on. partials (P, M, N), out (M, N).
static void sumBlock(View partials, View out, Tile m, Tile n, const SumConfig &cfg) {
  const Shape block = {cfg.rows, cfg.block}, blocks = {cfg.unroll, cfg.rows, cfg.block};
  Tile running = zeros(f32, blocks); // (BP, BM, BN)
  for (Tile p : range(0, partials.dim(0), cfg.unroll))
    running += load(partials, {p, m, n}, blocks); // (BP, BM, BN)
  Tile total = sum(running, 0);                   // (BM, BN)
  if (cfg.accumulate)
    total += cast(load(out, {m, n}, block), f32);
  store(out, {m, n}, cast(total, out.type()));
}

static void sumPartials(View partials, View out, SumConfig cfg) {
  sumBlock(partials, out, program_id(1) * cfg.rows, program_id(0) * cfg.block, cfg);
}

/// Two sums of one row each: the first programs compute the columns of the first, the others those of the second.
static void sumPair(View partials, View out, View morePartials, View moreOut, SumConfig cfg) {
  Tile p = program_id();
  Tile first = (out.dim(1) + (cfg.block - 1)) / cfg.block;
  if_(
      p < first, [&] { sumBlock(partials, out, 0, p * cfg.block, cfg); },
      [&] { sumBlock(morePartials, moreOut, 0, (p - first) * cfg.block, cfg); });
}

static std::vector<Field> sumFields() {
  return {field("rows", &SumConfig::rows, "rows a program"), field("block", &SumConfig::block, "columns a program"),
          field("unroll", &SumConfig::unroll, "partial results added in parallel"),
          field("accumulate", &SumConfig::accumulate, "adds to out instead of replacing it")};
}
const Kernel sumPartialsKernel =
    kernel("sum_partials", sumPartials, {"partials (P, M, N) f32", "out (M, N)"}, sumFields());
const Kernel sumPairKernel =
    kernel("sum_pair", sumPair,
           {"partials (P, 1, N) f32", "out (1, N)", "more_partials (P, 1, M) f32, of another sum", "more_out (1, M)"},
           sumFields());

namespace {
/// Programs of sums of partial results on a GPU. Several partial results are loaded at once to hide latency. If there
/// are many, a program has few columns, so that there are enough programs. `kiln-bench static` predicts the times.
struct SumTiles {
  int64_t fewParts = 8;            // partial results that are loaded all at once
  int fewBlock = 512;              // columns at most, with few parts
  int manyBlock = 32, unroll = 32; // columns, and partial results loaded at once, with many parts
};
constexpr SumTiles sumTiles;
} // namespace

SumConfig pickSum(const Target &target, int64_t P, int64_t N) {
  P = target.bucket(P);
  return target.visit([](const CpuFacts &) { return SumConfig{}; },
                      [&](const GpuFacts &) {
                        if (P > sumTiles.fewParts)
                          return SumConfig{.block = sumTiles.manyBlock, .unroll = sumTiles.unroll};
                        return SumConfig{.block = std::min(sumTiles.fewBlock, pickBlock(target, N, /*onCpu=*/0)),
                                         .unroll = static_cast<int>(P)};
                      });
}

Launch launchSum(const Target &target, const Arg &partials, const TensorRef &out, bool accumulate,
                 const std::optional<SumConfig> &config) {
  checkOperands(sumPartialsKernel, {partials.ref, out});
  const int64_t M = out.extents[0], N = out.extents[1];
  SumConfig chosen = config.value_or(pickSum(target, partials.ref.extents[0], N));
  chosen.accumulate = accumulate;
  return makeLaunch(sumPartialsKernel, chosen, programs(cdiv(N, chosen.block), cdiv(M, chosen.rows)), {partials, out});
}

std::vector<Launch> launchSums(const Target &target, const PartialSum &first, const PartialSum &second,
                               bool accumulate) {
  const auto isDense = [](const TensorRef &tensor) {
    return tensor.strides == TensorRef::dense(tensor.data, tensor.type, tensor.extents).strides;
  };
  std::vector<Launch> launches = {launchSum(target, first.partials, first.out, accumulate),
                                  launchSum(target, second.partials, second.out, accumulate)};
  if (!isDense(first.out) || !isDense(second.out))
    return launches;
  const auto inRow = [](const PartialSum &sum) {
    const int64_t N = sum.out.extents[0] * sum.out.extents[1];
    PartialSum row = {sum.partials, sum.out.reshape({1, N})};
    row.partials.ref = sum.partials.ref.reshape({sum.partials.ref.extents[0], 1, N});
    return row;
  };
  const PartialSum one = inRow(first), other = inRow(second);
  const int64_t N = one.out.extents[1], M = other.out.extents[1];
  SumConfig chosen = pickSum(target, one.partials.ref.extents[0], std::max(N, M));
  chosen.accumulate = accumulate;
  return {makeLaunch(sumPairKernel, chosen, programs(cdiv(N, chosen.block) + cdiv(M, chosen.block)),
                     {one.partials, one.out, other.partials, other.out})};
}

/// out[0] (+)= scale · Σ x: BLOCK running sums, then their sum.
static void total(View x, View out, Tile scale, TotalConfig cfg) {
  Tile running = zeros(f32, {cfg.block}); // (BLOCK)
  for (Tile n : range(0, x.dim(0), cfg.block))
    running += cast(load(x, {n}, {cfg.block}), f32); // (BLOCK)
  Tile result = sum(running) * scale;                // scalar
  if (cfg.accumulate)
    result += cast(load(out, {0}, {}), f32);
  store(out, {0}, cast(result, out.type()));
}

const Kernel totalKernel =
    kernel("total", total, {"x (N)", "out (1)", "scale f32, the factor of the sum"},
           {field("block", &TotalConfig::block, "parallel partial sums"),
            field("accumulate", &TotalConfig::accumulate, "adds to out instead of replacing it")});

TotalConfig pickTotal(const Target &target, int64_t n) { return {.block = pickBlock(target, n, /*onCpu=*/1024)}; }

Plan planTotal(const Target &target, const TensorRef &x, const TensorRef &out, float scale, bool accumulate,
               const std::optional<TotalConfig> &config) {
  checkOperands(totalKernel, {x, out});
  TotalConfig chosen = config.value_or(pickTotal(target, x.extents[0]));
  chosen.accumulate = accumulate;
  return {.launches = {makeLaunch(totalKernel, chosen, programs(1), {target.varying(x), out, scale})}};
}

} // namespace kiln
