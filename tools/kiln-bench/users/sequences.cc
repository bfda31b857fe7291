// Users' sequence kernels: a selective scan, a running sum, a sorting network.

#include "tools/kiln-bench/users/users.h"

namespace kiln::bench {

static void selectiveScan(View x, View delta, View a, View b, View c, View y, ScanConfig cfg) {
  const int64_t S = a.extent(1);
  Tile d = program_id(0) * cfg.bd, n = program_id(1);
  Tile decay = load(a, {d, 0}, {cfg.bd, S}), state = zeros(f32, {cfg.bd, S}); // (BD, S)
  for (Tile t : range(0, x.dim(1), 1)) {
    Tile step = unsqueeze(load(delta, {n, t, d}, {cfg.bd}), -1),
         input = unsqueeze(load(x, {n, t, d}, {cfg.bd}), -1); // (BD, 1)
    state = fma(state, exp2(step * decay, Accuracy::fast), step * input * load(b, {n, t, 0}, {S}));
    store(y, {n, t, d}, sum(state * load(c, {n, t, 0}, {S})));
  }
}
const Kernel selectiveScanKernel = kernel(
    "selective_scan", selectiveScan,
    {"x (B, T, D)", "delta (B, T, D)", "a (D, S), in powers of two", "b (B, T, S)", "c (B, T, S)", "y (B, T, D)"},
    {field("bd", &ScanConfig::bd, "channels of a program"), field("warps", &ScanConfig::warps, "warps of a program")});

static void runningSum(View x, View y, BlockConfig cfg) {
  Tile d = program_id(0) * cfg.block, b = program_id(1), total = zeros(f32, {cfg.block});
  for (Tile t : range(0, x.dim(1), 1)) {
    total += cast(load(x, {b, t, d}, {cfg.block}), f32);
    store(y, {b, t, d}, cast(total, y.type()));
  }
}
const Kernel runningSumKernel = kernel("running_sum", runningSum, {"x (B, T, D)", "y (B, T, D)"}, blockFields());

static void sortRows(View x, View y, RowsConfig cfg) {
  const int64_t C = x.extent(1), rows = cfg.rows;
  Tile m = program_id(0) * rows;
  Tile keys = load(x, {m, 0}, {rows, C}, Padding::inf); // (rows, C), C a power of two
  for (int64_t size = 2; size <= C; size *= 2)
    for (int64_t apart = size / 2; apart > 0; apart /= 2) {
      const int64_t groups = C / (2 * apart);
      Tile pairs = reshape(keys, {rows, groups, 2, apart});
      Tile low = reduce_min(pairs, 2, keep), high = reduce_max(pairs, 2, keep); // (rows, groups, 1, apart)
      Tile ascends = reshape(((iota(groups) * (2 * apart)) & size) == 0, {groups, 1, 1});
      Tile isFirst = reshape(iota(2), {2, 1}) == 0;
      keys = reshape(where(ascends == isFirst, low, high), {rows, C});
    }
  store(y, {m, 0}, keys);
}
const Kernel sortRowsKernel = kernel("sort_rows", sortRows, {"x (N, C)", "y (N, C), each row ascending"}, rowsFields());

} // namespace kiln::bench
