// Users' lookups: rows of a sparse matrix, embedding bags, a histogram.

#include "tools/kiln-bench/users/users.h"

namespace kiln::bench {

static void sparseRows(View starts, View columns, View values, View x, View y, BlockConfig cfg) {
  Tile m = program_id(0), d = program_id(1) * cfg.block, acc = zeros(f32, {cfg.block});
  Tile begin = load(starts, {m}, {}), end = load(starts, {m + 1}, {});
  for (Tile e : range(cast(begin, i64), cast(end, i64))) {
    Tile row = cast(load(columns, {e}, {}), i64);
    acc = fma(load(values, {e}, {}), load(x, {row, d}, {cfg.block}), acc);
  }
  store(y, {m, d}, acc);
}
const Kernel sparseRowsKernel =
    kernel("sparse_rows", sparseRows,
           {"starts (M + 1) i32, of rows", "columns (entries) i32", "values (entries)", "x (K, D)", "y (M, D)"},
           blockFields());

static void bags(View ids, View table, View y, BagConfig cfg) {
  const int64_t D = table.extent(1);
  Tile b = program_id(0) * cfg.bags, acc = zeros(f32, {cfg.bags, D}); // (bags, D)
  for (Tile l : range(0, ids.dim(1), 1)) {
    Tile rows = reshape(load(ids, {b, l}, {cfg.bags, 1}), {cfg.bags});
    acc += cast(load(table, {rows, 0}, {D}), f32);
  }
  store(y, {b, 0}, cast(acc / cast(ids.dim(1), f32), y.type()));
}
const Kernel bagsKernel = kernel(
    "bags", bags, {"ids (B, L) i32", "table (V, D)", "y (B, D), means of a bag's rows"},
    {field("bags", &BagConfig::bags, "bags of a program"), field("warps", &BagConfig::warps, "warps of a program")});

static void histogram(View x, View counts, HistogramConfig cfg) {
  Tile begin = program_id(0) * cfg.chunk, total = zeros(i32, {cfg.bins});
  for (Tile n : range(begin, min(begin + cfg.chunk, x.dim(0)), cfg.block)) {
    Tile isHere = cast(n, i32) + iota(cfg.block) < cast(x.dim(0), i32);     // no bin past the end
    Tile bin = unsqueeze(where(isHere, load(x, {n}, {cfg.block}), -1), -1); // (block, 1)
    total += sum(cast(bin == iota(cfg.bins), i32), 0);                      // (bins)
  }
  atomic_add(counts, {0}, total);
}
const Kernel histogramKernel = kernel("histogram", histogram, {"x (N)", "counts (bins)"},
                                      {field("bins", &HistogramConfig::bins, "bins"),
                                       field("block", &HistogramConfig::block, "elements of a round"),
                                       field("chunk", &HistogramConfig::chunk, "elements of a program"),
                                       field("warps", &HistogramConfig::warps, "warps of a program")});

} // namespace kiln::bench
