// Column sums in two stages: partial sums over some rows, then their sum in order.

#include "kernels/column_sums.h"
#include "kernels/operands.h"
#include "kernels/sum.h"

#include <algorithm>

namespace kiln {

/// partials[p] = Σ x[n] over the p-th part of the rows. x (N, C), partials (P, C).
static void columnSums(View x, View partials, ColumnSumsConfig cfg) {
  const Shape block = {cfg.block, cfg.columns};
  Tile p = program_id(0), c = program_id(1) * cfg.columns;
  Tile begin = p * cfg.rows, end = min(begin + cfg.rows, x.dim(0));
  Tile running = zeros(f32, block); // (BN, BC)
  for (Tile n : range(begin, end, cfg.block)) {
    Tile inside = unsqueeze(iota(cfg.block), -1) < cast(min(end - n, cfg.block), i32); // (BN, 1)
    running += where(inside, cast(load(x, {n, c}, block), f32), 0.0);                  // (BN, BC)
  }
  store(partials, {p, c}, sum(running, 0));
}

const Kernel columnSumsKernel =
    kernel("column_sums", columnSums, {"x (N, C)", "partials (P, C) f32, sums of parts of the rows"},
           {field("rows", &ColumnSumsConfig::rows, "rows a program"),
            field("columns", &ColumnSumsConfig::columns, "columns a program"),
            field("block", &ColumnSumsConfig::block, "rows added in parallel")});

/// The largest number of parts: the second stage, which adds them, then reads few rows. The number is not measured.
static constexpr int64_t maxParts = 64;

ColumnSumsConfig pickColumnSums(const Target &target, int64_t N, int64_t) {
  N = target.bucket(N);
  ColumnSumsConfig config;
  config.rows = static_cast<int>(std::max<int64_t>(config.rows, cdiv(cdiv(N, maxParts), config.block) * config.block));
  return config;
}

Plan planColumnSums(const Target &target, const TensorRef &x, const TensorRef &out, bool accumulate,
                    const std::optional<ColumnSumsConfig> &config) {
  checkOperands(columnSumsKernel, {x});
  const int64_t N = x.extents[0], C = x.extents[1];
  expectShape("column_sums", "out", out, {C});
  checkOperands(sumPartialsKernel, {{}, out.reshape({1, C})}, "column_sums");
  const ColumnSumsConfig chosen = config.value_or(pickColumnSums(target, N, C));
  const int64_t parts = cdiv(N, chosen.rows);
  return {.launches = {makeLaunch(columnSumsKernel, chosen, programs(parts, cdiv(C, chosen.columns)),
                                  {x, Arg::workspace(0, f32, {parts, C})}),
                       launchSum(target, Arg::workspace(0, f32, {parts, 1, C}), out.reshape({1, C}), accumulate)},
          .workspaceBytes = parts * C * bytesOf(f32)};
}

} // namespace kiln
