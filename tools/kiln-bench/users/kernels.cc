// Kernels such as users write.

#include "tools/kiln-bench/users/users.h"

#include "dialect/dsl/Kernel.h"

#include <cmath>
#include <numbers>

namespace kiln::bench {

namespace {
struct RowsConfig {
  int rows = 1, warps = 1;
};
struct BlockConfig {
  int block = 1024, warps = 4;
};
struct ProductConfig {
  int bm = 128, bn = 64, bk = 64, warps = 4;
};
} // namespace

static std::vector<Field> rowsFields() {
  return {field("rows", &RowsConfig::rows, "rows of a program").among({2, 4, 8, 16}),
          field("warps", &RowsConfig::warps, "warps of a program").among({2, 4, 8})};
}
static std::vector<Field> blockFields() {
  return {field("block", &BlockConfig::block, "elements of a program's tile").among({256, 512, 2048, 4096}),
          field("warps", &BlockConfig::warps, "warps of a program").among({1, 2, 8})};
}
static std::vector<Field> productFields() {
  return {field("bm", &ProductConfig::bm, "rows of a tile of the result").among({16, 32, 64}),
          field("bn", &ProductConfig::bn, "columns of a tile of the result").among({16, 32, 128, 256}),
          field("bk", &ProductConfig::bk, "length of the sum that one step adds").among({16, 32, 128}).changing(),
          field("warps", &ProductConfig::warps, "warps of a program").among({2, 8})};
}

// --- Rows: RMSNorm, softmax, group norm, a KL loss with its gradient, top-k -----------------------------------------

static void rmsNorm(View x, View gamma, View y, RowsConfig cfg) {
  const int64_t C = x.extent(1);
  Tile m = program_id(0) * cfg.rows;
  Tile v = cast(load(x, {m, 0}, {cfg.rows, C}), f32); // (rows, C)
  Tile scale = rsqrt(sum(v * v, -1, keep) * (1.0 / static_cast<double>(C)) + 1e-6, Accuracy::fast);
  store(y, {m, 0}, cast(v * scale * cast(load(gamma, {0}, {C}), f32), y.type()));
}
const Kernel rmsNormKernel = kernel("rms_norm", rmsNorm, {"x (N, C)", "gamma (C)", "y (N, C)"}, rowsFields());

static void softmaxOf(View x, View y, RowsConfig cfg) {
  const int64_t C = x.extent(1);
  Tile m = program_id(0) * cfg.rows;
  Tile v = cast(load(x, {m, 0}, {cfg.rows, C}, Padding::neg_inf), f32); // (rows, C)
  Tile e = exp(v - reduce_max(v, -1, keep), Accuracy::fast);
  store(y, {m, 0}, cast(divide(e, sum(e, -1, keep), Accuracy::fast), y.type()));
}
const Kernel userSoftmaxKernel = kernel("user_softmax", softmaxOf, {"x (N, C)", "y (N, C)"}, rowsFields());

struct GroupNormConfig {
  int channels = 8, warps = 4;
};
static void groupNorm(View x, View gamma, View beta, View y, GroupNormConfig cfg) {
  const int64_t S = x.extent(2), count = cfg.channels * S;
  Tile c = program_id(0) * cfg.channels, n = program_id(1);
  Tile v = cast(load(x, {n, c, 0}, {cfg.channels, S}), f32); // (channels, S)
  Tile centred = v - sum(v, everywhere) * (1.0 / static_cast<double>(count));
  Tile scale = rsqrt(sum(centred * centred, everywhere) * (1.0 / static_cast<double>(count)) + 1e-5, Accuracy::fast);
  Tile factor = unsqueeze(cast(load(gamma, {c}, {cfg.channels}), f32), -1); // (channels, 1)
  Tile shift = unsqueeze(cast(load(beta, {c}, {cfg.channels}), f32), -1);
  store(y, {n, c, 0}, cast(fma(centred * scale, factor, shift), y.type()));
}
const Kernel groupNormKernel = kernel("group_norm", groupNorm, {"x (N, C, S)", "gamma (C)", "beta (C)", "y (N, C, S)"},
                                      {field("channels", &GroupNormConfig::channels, "channels of a group"),
                                       field("warps", &GroupNormConfig::warps, "warps of a program").among({1, 2, 8})});

static void klLoss(View logP, View logQ, View losses, View gradient, Tile scale, BlockConfig cfg) {
  Tile n = program_id(0), total = zeros(f32, {cfg.block});
  for (Tile c : range(0, logP.dim(1), cfg.block)) {
    Tile p = cast(load(logP, {n, c}, {cfg.block}), f32);
    Tile q = cast(load(logQ, {n, c}, {cfg.block}, Padding::neg_inf), f32);
    Tile weight = exp(q, Accuracy::fast); // (block), 0 past the row's end
    total = where(q > -infinity, fma(weight, q - p, total), total);
    store(gradient, {n, c}, cast(weight * -scale, gradient.type()));
  }
  store(losses, {n}, sum(total));
}
const Kernel klLossKernel = kernel("kl_loss", klLoss,
                                   {"p (N, C), as logarithms", "q (N, C), as logarithms", "losses (N) f32",
                                    "gradient (N, C), by the former", "scale of the gradient"},
                                   blockFields());

struct LargestConfig {
  int rows = 1, k = 8, warps = 1;
};
static void largest(View x, View values, View places, LargestConfig cfg) {
  const int64_t C = x.extent(1);
  Tile m = program_id(0) * cfg.rows;
  Tile row = load(x, {m, 0}, {cfg.rows, C}, Padding::neg_inf); // (rows, C)
  for (int i = 0; i < cfg.k; ++i) {
    Tile place = argmax(row, 1, keep); // (rows, 1)
    store(values, {m, i}, reduce_max(row, 1, keep));
    store(places, {m, i}, place);
    row = where(iota(C) == place, -infinity, row);
  }
}
const Kernel largestKernel = kernel("largest", largest, {"x (N, C)", "values (N, k)", "places (N, k) i32"},
                                    {field("rows", &LargestConfig::rows, "rows of a program").among({2, 4, 8, 16}),
                                     field("k", &LargestConfig::k, "elements of a row that are wanted"),
                                     field("warps", &LargestConfig::warps, "warps of a program").among({2, 4})});

// --- Elementwise: reproducible dropout, rotary embeddings, a stencil, a short convolution along a sequence ----------

static void dropout(View x, View y, Tile seed, Tile rate, BlockConfig cfg) {
  Tile n = program_id(0) * cfg.block;
  Tile stays = random(seed, n + iota(cfg.block, i64)) >= rate; // (block), reproducible
  Tile v = cast(load(x, {n}, {cfg.block}), f32);
  store(y, {n}, cast(where(stays, v * divide(1.0, 1.0 - rate, Accuracy::fast), 0.0), y.type()));
}
const Kernel dropoutKernel =
    kernel("dropout", dropout, {"x (N)", "y (N)", "seed", "rate of elements that are dropped"}, blockFields());

struct RopeConfig {
  int bt = 32, warps = 4;
};
static void rope(View x, View cosines, View sines, View y, RopeConfig cfg) {
  const int64_t half = x.extent(3) / 2;
  Tile t = program_id(0) * cfg.bt, h = program_id(1), b = program_id(2);
  Tile c = load(cosines, {t, 0}, {cfg.bt, half}), s = load(sines, {t, 0}, {cfg.bt, half}); // (BT, D / 2)
  Tile left = cast(load(x, {b, h, t, 0}, {cfg.bt, half}), f32),
       right = cast(load(x, {b, h, t, half}, {cfg.bt, half}), f32);
  store(y, {b, h, t, 0}, cast(fma(left, c, -(right * s)), y.type()));
  store(y, {b, h, t, half}, cast(fma(right, c, left * s), y.type()));
}
const Kernel ropeKernel =
    kernel("rope", rope, {"x (B, H, T, D)", "cosines (T, D / 2) f32", "sines (T, D / 2) f32", "y (B, H, T, D)"},
           {field("bt", &RopeConfig::bt, "positions of a program").among({1, 4, 8, 16, 64, 128}),
            field("warps", &RopeConfig::warps, "warps of a program").among({1, 2, 8})});

struct StencilConfig {
  int bm = 16, bn = 128, warps = 4;
};
static void stencil(View x, View y, Tile centre, Tile side, StencilConfig cfg) {
  Tile i = program_id(0) * cfg.bm, j = program_id(1) * cfg.bn;
  const auto at = [&](int down, int right) { return load(x, {i + down, j + right}, {cfg.bm, cfg.bn}); };
  store(y, {i, j}, fma(at(-1, 0) + at(1, 0) + at(0, -1) + at(0, 1), side, at(0, 0) * centre));
}
const Kernel stencilKernel = kernel("stencil", stencil, {"x (M, N)", "y (M, N)", "centre of the factors", "side"},
                                    {field("bm", &StencilConfig::bm, "rows of a program").among({1, 4, 8, 32, 64}),
                                     field("bn", &StencilConfig::bn, "columns of a program").among({32, 64, 256, 512}),
                                     field("warps", &StencilConfig::warps, "warps of a program").among({1, 2, 8})});

struct ConvolveConfig {
  int bt = 16, bd = 128, warps = 4;
};
static void convolve(View x, View w, View bias, View y, ConvolveConfig cfg) {
  constexpr int taps = 4;
  Tile d = program_id(0) * cfg.bd, t = program_id(1) * cfg.bt, b = program_id(2);
  Tile acc = broadcast(cast(load(bias, {d}, {cfg.bd}), f32), {cfg.bt, cfg.bd}); // (BT, BD)
  for (int i = 0; i < taps; ++i) {
    Tile v = cast(load(x, {b, t + (i - taps + 1), d}, {cfg.bt, cfg.bd}), f32);
    acc = fma(v, broadcast(cast(load(w, {i, d}, {cfg.bd}), f32), {cfg.bt, cfg.bd}), acc);
  }
  store(y, {b, t, d}, cast(divide(acc, 1.0 + exp(-acc, Accuracy::fast), Accuracy::fast), y.type()));
}
const Kernel convolveKernel =
    kernel("convolve", convolve, {"x (B, T, D)", "w (4, D)", "bias (D)", "y (B, T, D)"},
           {field("bt", &ConvolveConfig::bt, "positions of a program").among({1, 4, 8, 32, 64}),
            field("bd", &ConvolveConfig::bd, "channels of a program").among({32, 64, 256, 512}),
            field("warps", &ConvolveConfig::warps, "warps of a program").among({1, 2, 8})});

// --- Fused GEMMs: SwiGLU, 8-bit weights scaled in the loop, an LSTM step, a persistent GEMM -------------------------

static Tile sigmoid(const Tile &x) { return divide(1.0, 1.0 + exp(-x, Accuracy::fast), Accuracy::fast); }

static void swiglu(View x, View gate, View up, View y, ProductConfig cfg) {
  Tile m = program_id(0) * cfg.bm, n = program_id(1) * cfg.bn;
  Tile g = zeros(f32, {cfg.bm, cfg.bn}), u = zeros(f32, {cfg.bm, cfg.bn}); // (BM, BN)
  for (Tile k : range(0, x.dim(1), cfg.bk)) {
    Tile v = load(x, {m, k}, {cfg.bm, cfg.bk});
    g = dot(v, load(gate, {k, n}, {cfg.bk, cfg.bn}), g);
    u = dot(v, load(up, {k, n}, {cfg.bk, cfg.bn}), u);
  }
  store(y, {m, n}, cast(g * sigmoid(g) * u, y.type()));
}
const Kernel swigluKernel =
    kernel("swiglu", swiglu, {"x (M, K)", "gate (K, N)", "up (K, N)", "y (M, N)"}, productFields());

static void scaledProduct(View x, View w, View scales, View y, ProductConfig cfg) {
  Tile m = program_id(0) * cfg.bm, n = program_id(1) * cfg.bn;
  Tile acc = zeros(f32, {cfg.bm, cfg.bn}); // (BM, BN)
  for (Tile k : range(0, x.dim(1), cfg.bk)) {
    Tile scale = load(scales, {k / cfg.bk, n}, {cfg.bn});                // of these BK rows
    Tile weights = cast(load(w, {k, n}, {cfg.bk, cfg.bn}), f32) * scale; // (BK, BN)
    acc = dot(load(x, {m, k}, {cfg.bm, cfg.bk}), cast(weights, x.type()), acc);
  }
  store(y, {m, n}, cast(acc, y.type()));
}
const Kernel scaledProductKernel =
    kernel("scaled_product", scaledProduct, {"x (M, K)", "w (K, N) i8", "scales (K / BK, N) f32, of w", "y (M, N)"},
           productFields());

static void lstmStep(View x, View h, View cell, View wx, View wh, View bias, View hNext, View cellNext,
                     ProductConfig cfg) {
  Tile m = program_id(0) * cfg.bm, n = program_id(1) * cfg.bn;
  Tile gates[4]; // input, forget, candidate, output
  for (int g = 0; g < 4; ++g)
    gates[g] = broadcast(load(bias, {g, n}, {1, cfg.bn}), {cfg.bm, cfg.bn}); // (BM, BN)
  const auto add = [&](View from, View w) {
    for (Tile k : range(0, from.dim(1), cfg.bk)) {
      Tile v = load(from, {m, k}, {cfg.bm, cfg.bk});
      for (int g = 0; g < 4; ++g)
        gates[g] = dot(v, load(w, {g, k, n}, {cfg.bk, cfg.bn}), gates[g]);
    }
  };
  add(x, wx);
  add(h, wh);
  Tile now = sigmoid(gates[1]) * load(cell, {m, n}, {cfg.bm, cfg.bn}) +
             sigmoid(gates[0]) * tanh(gates[2], Accuracy::fast); // (BM, BN)
  store(cellNext, {m, n}, now);
  store(hNext, {m, n}, cast(sigmoid(gates[3]) * tanh(now, Accuracy::fast), hNext.type()));
}
const Kernel lstmStepKernel = kernel("lstm_step", lstmStep,
                                     {"x (M, X)", "h (M, H)", "cell (M, H) f32", "wx (4, X, H)", "wh (4, H, H)",
                                      "bias (4, H) f32", "hNext (M, H)", "cellNext (M, H) f32"},
                                     productFields());

static void persistentProduct(View a, View b, View c, ProductConfig cfg) {
  Tile columns = (c.dim(1) + cfg.bn - 1) / cfg.bn, tiles = (c.dim(0) + cfg.bm - 1) / cfg.bm * columns;
  for (Tile tile : range(program_id(0), tiles, num_programs(0))) {
    Tile m = tile / columns * cfg.bm, n = tile % columns * cfg.bn;
    Tile acc = zeros(f32, {cfg.bm, cfg.bn}); // (BM, BN)
    for (Tile k : range(0, a.dim(1), cfg.bk))
      acc = dot(load(a, {m, k}, {cfg.bm, cfg.bk}), load(b, {k, n}, {cfg.bk, cfg.bn}), acc);
    store(c, {m, n}, cast(acc, c.type()));
  }
}
const Kernel persistentProductKernel =
    kernel("persistent_product", persistentProduct, {"a (M, K)", "b (K, N)", "c (M, N)"}, productFields());

// --- Attention: GQA with a sliding window and ALiBi; paged KV cache decoding ----------------------------------------

/// Online softmax over blocks of keys: running maximum, sum and output of some rows.
namespace {
struct Online {
  Tile top, total, out; // (BM), (BM), (BM, D)
  Online(int64_t bm, int64_t D) : top(full(f32, {bm}, -1e30)), total(zeros(f32, {bm})), out(zeros(f32, {bm, D})) {}

  /// Adds a block: scores (BM, BN) for base 2, and values (BN, D).
  void add(const Tile &s, const Tile &value) {
    Tile higher = max(top, reduce_max(s)), shrink = exp2(top - higher, Accuracy::fast);
    Tile p = exp2(s - unsqueeze(higher, -1), Accuracy::fast); // (BM, BN)
    total = fma(total, shrink, sum(p));
    out = dot(cast(p, value.type()), value, out * unsqueeze(shrink, -1));
    top = higher;
  }
  Tile result() const { return divide(out, unsqueeze(total, -1), Accuracy::fast); }
};
} // namespace

struct WindowConfig {
  int bm = 128, bn = 64, window = 1024, group = 4, warps = 4;
};
static void windowAttention(View q, View k, View v, View slopes, View o, Tile scale, WindowConfig cfg) {
  const int64_t D = q.extent(3);
  Tile m = program_id(0) * cfg.bm, h = program_id(1), b = program_id(2), shared = h / cfg.group;
  Tile slope = load(slopes, {h}, {}) * std::numbers::log2e, unit = scale * std::numbers::log2e;
  Tile query = load(q, {b, h, m, 0}, {cfg.bm, D}); // (BM, D)
  Tile rows = unsqueeze(cast(m, i32) + iota(cfg.bm), -1);
  Online online(cfg.bm, D);
  Tile first = max(m - cfg.window + 1, 0) / cfg.bn * cfg.bn;
  for (Tile n : range(first, min(m + cfg.bm, k.dim(2)), cfg.bn)) {
    Tile far = rows - (cast(n, i32) + iota(cfg.bn)); // (BM, BN): the key's distance
    Tile s = fma(cast(far, f32), -slope, dot(query, transpose(load(k, {b, shared, n, 0}, {cfg.bn, D}))) * unit);
    s = where((far >= 0) & (far < cfg.window), s, -infinity);
    online.add(s, load(v, {b, shared, n, 0}, {cfg.bn, D}));
  }
  store(o, {b, h, m, 0}, cast(online.result(), o.type()));
}
const Kernel windowAttentionKernel = kernel(
    "window_attention", windowAttention,
    {"q (B, H, T, D)", "k (B, H / group, T, D)", "v (B, H / group, T, D)", "slopes (H) f32", "o (B, H, T, D)", "scale"},
    {field("bm", &WindowConfig::bm, "queries of a program").among({16, 32, 64}),
     field("bn", &WindowConfig::bn, "keys of a round").among({16, 32, 128}),
     field("window", &WindowConfig::window, "keys that a query sees"),
     field("group", &WindowConfig::group, "heads that share keys"),
     field("warps", &WindowConfig::warps, "warps of a program").among({2, 8})});

struct PagedConfig {
  int group = 16, page = 16, pages = 4, warps = 4;
};
static void pagedAttention(View q, View k, View v, View table, View lengths, View o, Tile scale, PagedConfig cfg) {
  const int64_t D = q.extent(3), bn = cfg.page * cfg.pages;
  Tile h = program_id(0), b = program_id(1), length = load(lengths, {b}, {}), unit = scale * std::numbers::log2e;
  Tile query = load(q, {b, h, 0, 0}, {cfg.group, D}); // (group, D)
  Online online(cfg.group, D);
  for (Tile n : range(0, cast(length, i64), bn)) {
    Tile blocks = load(table, {b, n / cfg.page}, {cfg.pages});
    Tile key = reshape(load(k, {blocks, h, 0, 0}, {1, cfg.page, D}), {bn, D}); // (BN, D)
    Tile value = reshape(load(v, {blocks, h, 0, 0}, {1, cfg.page, D}), {bn, D});
    Tile s = where(iota(bn) < length - cast(n, i32), dot(query, transpose(key)) * unit, -infinity); // (group, BN)
    online.add(s, value);
  }
  store(o, {b, h, 0, 0}, cast(online.result(), o.type()));
}
const Kernel pagedAttentionKernel =
    kernel("paged_attention", pagedAttention,
           {"q (B, H, group, D)", "k (blocks, H, page, D)", "v (blocks, H, page, D)",
            "blocks (B, pages) i32, of a sequence", "lengths (B) i32", "o (B, H, group, D)", "scale"},
           {field("group", &PagedConfig::group, "queries that share keys"),
            field("page", &PagedConfig::page, "keys of a page"),
            field("pages", &PagedConfig::pages, "pages of a round").among({1, 2, 8}),
            field("warps", &PagedConfig::warps, "warps of a program").among({1, 2, 8})});

// --- Sequences: a selective scan, a running sum, a sorting network --------------------------------------------------

struct ScanConfig {
  int bd = 64, warps = 4;
};
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
    {field("bd", &ScanConfig::bd, "channels of a program").among({1, 4, 8, 16, 32, 128}),
     field("warps", &ScanConfig::warps, "warps of a program").among({1, 2})});

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

// --- Lookups: rows of a sparse matrix, embedding bags, a histogram --------------------------------------------------

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

struct BagConfig {
  int bags = 4, warps = 4;
};
static void bags(View ids, View table, View y, BagConfig cfg) {
  const int64_t D = table.extent(1);
  Tile b = program_id(0) * cfg.bags, acc = zeros(f32, {cfg.bags, D}); // (bags, D)
  for (Tile l : range(0, ids.dim(1), 1)) {
    Tile rows = reshape(load(ids, {b, l}, {cfg.bags, 1}), {cfg.bags});
    acc += cast(load(table, {rows, 0}, {D}), f32);
  }
  store(y, {b, 0}, cast(acc / cast(ids.dim(1), f32), y.type()));
}
const Kernel bagsKernel = kernel("bags", bags, {"ids (B, L) i32", "table (V, D)", "y (B, D), means of a bag's rows"},
                                 {field("bags", &BagConfig::bags, "bags of a program").among({1, 2, 8, 16}),
                                  field("warps", &BagConfig::warps, "warps of a program").among({1, 2})});

struct HistogramConfig {
  int bins = 256, block = 256, chunk = 65536, warps = 4;
};
static void histogram(View x, View counts, HistogramConfig cfg) {
  Tile begin = program_id(0) * cfg.chunk, total = zeros(i32, {cfg.bins});
  for (Tile n : range(begin, min(begin + cfg.chunk, x.dim(0)), cfg.block)) {
    Tile isHere = cast(n, i32) + iota(cfg.block) < cast(x.dim(0), i32);     // no bin past the end
    Tile bin = unsqueeze(where(isHere, load(x, {n}, {cfg.block}), -1), -1); // (block, 1)
    total += sum(cast(bin == iota(cfg.bins), i32), 0);                      // (bins)
  }
  atomic_add(counts, {0}, total);
}
const Kernel histogramKernel =
    kernel("histogram", histogram, {"x (N)", "counts (bins)"},
           {field("bins", &HistogramConfig::bins, "bins"),
            field("block", &HistogramConfig::block, "elements of a round").among({16, 32, 64, 128, 512}),
            field("chunk", &HistogramConfig::chunk, "elements of a program").among({4096, 16384}),
            field("warps", &HistogramConfig::warps, "warps of a program").among({1, 2, 8})});

} // namespace kiln::bench
