// Users' variants of attention: GQA with a sliding window and ALiBi; paged KV cache decoding.

#include "tools/kiln-bench/users/users.h"

#include <cmath>
#include <numbers>

namespace kiln::bench {

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
    {field("bm", &WindowConfig::bm, "queries of a program"), field("bn", &WindowConfig::bn, "keys of a round"),
     field("window", &WindowConfig::window, "keys that a query sees"),
     field("group", &WindowConfig::group, "heads that share keys"),
     field("warps", &WindowConfig::warps, "warps of a program")});

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
const Kernel pagedAttentionKernel = kernel(
    "paged_attention", pagedAttention,
    {"q (B, H, group, D)", "k (blocks, H, page, D)", "v (blocks, H, page, D)", "blocks (B, pages) i32, of a sequence",
     "lengths (B) i32", "o (B, H, group, D)", "scale"},
    {field("group", &PagedConfig::group, "queries that share keys"),
     field("page", &PagedConfig::page, "keys of a page"), field("pages", &PagedConfig::pages, "pages of a round"),
     field("warps", &PagedConfig::warps, "warps of a program")});

} // namespace kiln::bench
