// Flash attention, forward. A program holds a block of queries and walks the keys and values, keeping for each query a
// running maximum and sum of the softmax and a running output.

#include "kernels/heads.h"
#include "kernels/rows.h"

#include <cmath>

namespace kiln {

//===-- Kernels -------------------------------------------------------------------------------------------------===//

/// q, o (B, H, Tq, D); k, v (B, Hk, Tk, D); lse (B, H, Tq); ranges (B, Tq, 2); mask (B, H, Tq, Tk).
static void attention(View q, View k, View v, View o, View lse, View ranges, View mask, Tile scale, View site,
                      Tile most, Tile threshold, Tile keptScale, AttentionConfig cfg) {
  const int64_t D = width({q, k, v, o});
  Tile m = program_id(0) * cfg.bm, h = program_id(1), b = program_id(2), hk = keyHeadOf(h, cfg);
  const WeightDropout dropout = dropoutFrom(site, most, threshold, keptScale, b, q.dim(1), cfg);
  Tile scale2 = scale * M_LOG2E; // exp(s · scale) = exp2(s · scale2)
  Sight sight = {.mask = mask, .b = b, .h = h, .Tq = q.dim(2), .Tk = keysIn(k, q, cfg), .byQueries = true};
  lookByQueries(sight, ranges, m, cfg);

  Tile query = load(q, {b, h, m, 0}, {cfg.bm, D}); // (BM, D)
  Tile top = full(f32, {cfg.bm}, -infinity);       // (BM) running maximum of the scores, times scale2
  Tile total = zeros(f32, cfg.sums > 1 ? Shape{cfg.bm, cfg.sums} : Shape{cfg.bm}); // (BM) or (BM, sums) running sums
  Tile out = zeros(f32, {cfg.bm, D}); // (BM, D) running output, times total

  // Columns that no row of the block sees are never visited.
  auto [first, end] = keysOf(m, ranges, sight, cfg);
  for (Tile n : range(first, end, cfg.bn)) {
    // 1. Scores.
    Tile key = load(k, {b, hk, n, 0}, {cfg.bn, D});     // (BN, D)
    Tile s = dot(query, transpose(key), cfg.precision); // (BM, BN)
    Tile seen = *visible(m, n, sight, cfg);             // (BM, BN)

    // 2. Probabilities relative to the new maximum, and what the old ones shrink by. A row that has seen no column yet
    //    has no maximum, and anything is as good.
    Tile higher = max(top, reduce_max(where(seen, s, -infinity)) * scale2); // (BM)
    Tile base = mayBeBlind(cfg) ? where(higher == -infinity, 0.0, higher) : higher;
    Tile p = exp2(fma(s, scale2, -expand(base, -1)), Accuracy::fast); // (BM, BN)
    p = where(seen, p, 0.0);
    Tile shrink = exp2(top - base, Accuracy::fast); // (BM)
    if (cfg.sums > 1)
      total = fma(total, expand(shrink, -1), sum(reshape(p, {cfg.bm, cfg.bn / cfg.sums, cfg.sums}), 1)); // (BM, sums)
    else
      total = fma(total, shrink, sum(p)); // (BM)
    top = higher;

    // 3. Output, of the weights that are kept. The sum is that of all.
    p = masked(keptWeights(m, n, h, dropout, cfg), p);
    Tile value = load(v, {b, hk, n, 0}, {cfg.bn, D});                             // (BN, D)
    out = dot(cast(p, v.type()), value, out * expand(shrink, -1), cfg.precision); // (BM, D)
  }
  if (cfg.sums > 1)
    total = sum(total);                               // (BM)
  Tile share = 1.0 / total, sums = top + log2(total); // (BM)
  if (mayBeBlind(cfg)) {
    share = where(total > 0.0, share, 0.0);
    sums = where(total > 0.0, sums, infinity);
  }
  store(o, {b, h, m, 0}, cast(out * expand(scaled(share, dropout, cfg), -1), o.type()));
  store(lse, {b, h, m}, sums);
}

const Kernel attentionKernel =
    kernel("attention", attention,
           {"q (B, H, Tq, D)", "k (B, Hk, Tk, D)", "v (B, Hk, Tk, D)", "o (B, H, Tq, D), softmax(q · kᵀ · scale) · v",
            "lse (B, H, Tq) f32, base-2 logarithms of the sums of exponentials",
            "ranges (B, Tq, 2) i32, read when ranged: a row sees columns from [0] and below [1]",
            "mask (B, H, Tq, Tk) i8, read when masked: a row sees the columns that are not 0", "scale f32", ofSite,
            ofMost, ofThreshold, ofKeptScale},
           attentionFields());

//===-- Plans ---------------------------------------------------------------------------------------------------===//

/// On a GPU: 128 queries, of which a warp has 32 rows, so that each fragment of keys and values is multiplied twice, or
/// 16 where fragments and output would not fit its registers: rows of more than 128 bytes. At least 16 rows a warp: the
/// rows of an instruction, and so scores and probabilities stay in the warp's registers. A lane holds two of eight
/// columns of these, and sums its own. The queries and the rings of keys and values fit shared memory.
static AttentionConfig gpuForwardTilesOf(const GpuFacts &gpu, int64_t Tq, int64_t Tk, int64_t D, Type type) {
  AttentionConfig config{.bm = 128, .bn = 64, .warps = D * bytesOf(type) <= 128 ? 4 : 8, .sums = 8};
  const auto bytes = [&] { return (config.bm + 2 * config.stages * config.bn) * D * bytesOf(type); };
  while (config.bm > 16 && config.bm / 2 >= Tq)
    config.bm /= 2;
  while (config.bn > 16 && (config.bn / 2 >= Tk || (config.bn > 32 && bytes() > gpu.ctaSharedBytes)))
    config.bn /= 2;
  while (config.bm > 16 && bytes() > gpu.ctaSharedBytes)
    config.bm /= 2;
  config.warps = std::min(config.warps, config.bm / 16);
  return config;
}

/// On a CPU a larger tile reads keys and values less often, and the backward pass, which keeps a block of keys at hand,
/// queries; but a product's operands and results should stay in the first caches.
AttentionConfig pickAttention(const Target &target, int64_t Tq, int64_t D, Type type,
                              const std::optional<int64_t> &keys) {
  int64_t Tk = keys.value_or(Tq);
  if (target.elastic) // one choice for all pairs of lengths of which the longer is in a bucket
    Tk = Tq = target.lengthBucket(std::max(Tq, Tk));
  const Precision precision = target.precisionOf(type);
  const bool isExact = type == f32 && precision != Precision::tf32; // and so no work for tensor cores
  AttentionConfig config =
      target.visit([=](const CpuFacts &) { return tilesOf(Tq <= 512 ? 64 : 128, 64, Tq, Tk); },
                   [=](const GpuFacts &gpu) {
                     return isExact ? gpuTilesOf(gpu, std::max(Tq, Tk), D) : gpuForwardTilesOf(gpu, Tq, Tk, D, type);
                   });
  config.precision = precision;
  config.shifted = target.elastic;
  return config;
}

Plan planAttention(const Target &target, const TensorRef &q, const TensorRef &k, const TensorRef &v, const TensorRef &o,
                   const TensorRef &lse, float scale, const AttentionMask &mask,
                   const std::optional<AttentionConfig> &config) {
  const AttentionExtents s = expectHeads("attention", q, k, v, o, mask, scale);
  expectSums("attention", lse, s);
  const AttentionConfig chosen = configFor(config, pickAttention(target, s.Tq, s.D, q.type, s.Tk), s, mask);
  std::vector<Arg> args = {q, k, v, o, lse, mask.ranges.value_or(lse), wholeMask(mask, s, lse), scale};
  appendDropout(args, mask, lse);
  return {.launches = {{&attentionKernel, textOf(attentionKernel.fields, chosen),
                        programs(ceildiv(s.Tq, chosen.bm), s.H, s.B), args}}};
}

} // namespace kiln
