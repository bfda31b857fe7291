// Ordered sums. Every output element is summed by one program, front to back.

#include "kernels/sum.h"
#include "kernels/blocks.h"
#include "kernels/expect.h"

namespace kiln {

/// out (+)= Σ_p partials[p]. partials (P, M, N), out (M, N).
static void sumPartials(View partials, View out, SumConfig cfg) {
  const Shape block = {cfg.rows, cfg.block}, blocks = {cfg.parts, cfg.rows, cfg.block};
  Tile n = program_id(0) * cfg.block, m = program_id(1) * cfg.rows;
  Tile running = zeros(f32, blocks); // (BP, BM, BN)
  for (Tile p : range(0, partials.dim(0), cfg.parts))
    running += load(partials, {p, m, n}, blocks); // (BP, BM, BN)
  Tile total = sum(running, 0);                   // (BM, BN)
  if (cfg.accumulate)
    total += cast(load(out, {m, n}, block), f32);
  store(out, {m, n}, cast(total, out.type()));
}

const Kernel sumPartialsKernel =
    kernel("sum_partials", sumPartials, {"partials (P, M, N) f32", "out (M, N)"},
           {field("rows", &SumConfig::rows, "rows a program"), field("block", &SumConfig::block, "columns a program"),
            field("parts", &SumConfig::parts, "partial results that are added side by side"),
            field("accumulate", &SumConfig::accumulate, "adds to what out holds")});

/// On a GPU, whose memory answers late, several partial results are on their way at once.
SumConfig pickSum(const Target &target, int64_t P, int64_t N) {
  return {.block = pickBlock(target, N, 1024),
          .parts = target.visit([](const CpuFacts &) { return 1; },
                                [=](const GpuFacts &) { return P >= 8   ? 8
                                                               : P >= 4 ? 4
                                                                        : 1; })};
}

Launch launchSum(const Target &target, const Arg &partials, const TensorRef &out, bool accumulate,
                 const std::optional<SumConfig> &config) {
  const char *plan = "sum_partials";
  expectRank(plan, "out", out, 2);
  expectRank(plan, "partials", partials.ref, 3);
  expectType(plan, "partials", partials.ref, {f32});
  const int64_t M = out.extents[0], N = out.extents[1];
  expectShape(plan, "partials", partials.ref, {partials.ref.extents[0], M, N});
  SumConfig chosen = config.value_or(pickSum(target, partials.ref.extents[0], N));
  chosen.accumulate = accumulate;
  return {&sumPartialsKernel,
          textOf(sumPartialsKernel.fields, chosen),
          programs(ceildiv(N, chosen.block), ceildiv(M, chosen.rows)),
          {partials, out}};
}

/// out[0] (+)= scale · Σ x: BLOCK running sums side by side, then these together.
static void total(View x, View out, Tile scale, TotalConfig cfg) {
  Tile running = zeros(f32, {cfg.block}); // (BLOCK)
  for (Tile n : range(0, x.dim(0), cfg.block))
    running += cast(load(x, {n}, {cfg.block}), f32); // (BLOCK)
  Tile result = sum(running) * scale;                // scalar
  if (cfg.accumulate)
    result += cast(load(out, {0}, {}), f32);
  store(out, {0}, cast(result, out.type()));
}

const Kernel totalKernel = kernel("total", total, {"x (N)", "out (1)", "scale f32, what the sum is multiplied by"},
                                  {field("block", &TotalConfig::block, "running sums side by side"),
                                   field("accumulate", &TotalConfig::accumulate, "adds to what out holds")});

TotalConfig pickTotal(const Target &target, int64_t n) { return {.block = pickBlock(target, n, 1024)}; }

Plan planTotal(const Target &target, const TensorRef &x, const TensorRef &out, float scale, bool accumulate,
               const std::optional<TotalConfig> &config) {
  const char *plan = "total";
  expectRank(plan, "x", x, 1);
  expectFloat(plan, "x", x);
  expectShape(plan, "out", out, {1});
  TotalConfig chosen = config.value_or(pickTotal(target, x.extents[0]));
  chosen.accumulate = accumulate;
  return {.launches = {{&totalKernel, textOf(totalKernel.fields, chosen), programs(1), {x, out, scale}}}};
}

} // namespace kiln
