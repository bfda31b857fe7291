// Flash attention, forward. A program holds a block of queries and walks the keys and values, keeping for each query a
// running maximum and sum of the softmax and a running output.

#include "kernels/heads.h"
#include "kernels/rows.h"

#include <cmath>

namespace kiln {

//===-- Kernels -------------------------------------------------------------------------------------------------===//

/// q, k, v, o (B, H, T, D); lse (B, H, T).
static void attention(View q, View k, View v, View o, View lse, Tile scale, AttentionConfig cfg) {
  const int64_t D = width({q, k, v, o});
  Tile m = program_id(0) * cfg.bm, h = program_id(1), b = program_id(2), T = q.dim(2);
  Tile scale2 = scale * M_LOG2E; // exp(s · scale) = exp2(s · scale2)

  Tile query = load(q, {b, h, m, 0}, {cfg.bm, D}); // (BM, D)
  Tile top = full(f32, {cfg.bm}, -infinity);       // (BM) running maximum of the scores, times scale2
  Tile total = zeros(f32, {cfg.bm});               // (BM) running sum
  Tile out = zeros(f32, {cfg.bm, D});              // (BM, D) running output, times total

  // Causal: columns beyond the block's last row are never visited.
  Tile end = cfg.causal ? min(m + cfg.bm, T) : T;
  for (Tile n : range(0, end, cfg.bn)) {
    // 1. Scores.
    Tile key = load(k, {b, h, n, 0}, {cfg.bn, D});      // (BN, D)
    Tile s = dot(query, transpose(key), cfg.precision); // (BM, BN)
    Tile seen = visible(m, n, T, cfg);                  // (BM, BN)

    // 2. Probabilities relative to the new maximum, and what the old ones shrink by.
    Tile higher = max(top, reduce_max(where(seen, s, -infinity)) * scale2); // (BM)
    Tile p = exp2(fma(s, scale2, -expand(higher, -1)), Accuracy::fast);     // (BM, BN)
    p = where(seen, p, 0.0);
    Tile shrink = exp2(top - higher, Accuracy::fast); // (BM)
    total = fma(total, shrink, sum(p));               // (BM)
    top = higher;

    // 3. Output.
    Tile value = load(v, {b, h, n, 0}, {cfg.bn, D});                              // (BN, D)
    out = dot(cast(p, v.type()), value, out * expand(shrink, -1), cfg.precision); // (BM, D)
  }
  store(o, {b, h, m, 0}, cast(out * expand(1.0 / total, -1), o.type()));
  store(lse, {b, h, m}, top + log2(total));
}

const Kernel attentionKernel =
    kernel("attention", attention,
           {"q (B, H, T, D)", "k (B, H, T, D)", "v (B, H, T, D)", "o (B, H, T, D), softmax(q · kᵀ · scale) · v",
            "lse (B, H, T) f32, base-2 logarithms of the sums of exponentials", "scale f32"},
           attentionFields());

//===-- Plans ---------------------------------------------------------------------------------------------------===//

/// On a GPU: 128 queries, of which a warp has 32 rows, so that each fragment of keys and values is multiplied twice, or
/// 16 where an output of more than 64 columns would not fit its registers. At least 16 rows a warp: the rows of an
/// instruction, and so scores and probabilities stay in the warp's registers. The queries and the rings of keys and
/// values fit shared memory.
static AttentionConfig gpuForwardTilesOf(const GpuFacts &gpu, int64_t T, int64_t D, Type type) {
  AttentionConfig config{.bm = 128, .bn = 64, .warps = D <= 64 ? 4 : 8};
  const auto bytes = [&] { return (config.bm + 2 * config.stages * config.bn) * D * bytesOf(type); };
  while (config.bm > 16 && config.bm / 2 >= T)
    config.bm /= 2;
  while (config.bn > 16 && (config.bn / 2 >= T || (config.bn > 32 && bytes() > gpu.ctaSharedBytes)))
    config.bn /= 2;
  while (config.bm > 16 && bytes() > gpu.ctaSharedBytes)
    config.bm /= 2;
  config.warps = std::min(config.warps, config.bm / 16);
  return config;
}

/// On a CPU a larger tile reads keys and values less often, and the backward pass, which keeps a block of keys at hand,
/// queries; but a product's operands and results should stay in the first caches.
AttentionConfig pickAttention(const Target &target, int64_t T, int64_t D, Type type) {
  const Precision precision = target.precisionOf(type);
  const bool isExact = type == f32 && precision != Precision::tf32; // and so no work for tensor cores
  AttentionConfig config = target.visit(
      [=](const CpuFacts &) { return tilesOf(T <= 512 ? 64 : 128, 64, T); },
      [=](const GpuFacts &gpu) { return isExact ? gpuTilesOf(gpu, T, D) : gpuForwardTilesOf(gpu, T, D, type); });
  config.precision = precision;
  return config;
}

Plan planAttention(const Target &target, const TensorRef &q, const TensorRef &k, const TensorRef &v, const TensorRef &o,
                   const TensorRef &lse, float scale, bool causal, const std::optional<AttentionConfig> &config) {
  const Shape shape = expectHeads("attention", q, k, v, o, lse);
  if (!(scale > 0))
    throw Error("'attention': expected 'scale' to be above 0, but got " + std::to_string(scale));
  AttentionConfig chosen = config.value_or(pickAttention(target, shape[2], shape[3], q.type));
  chosen.causal = causal;
  return {.launches = {{&attentionKernel,
                        textOf(attentionKernel.fields, chosen),
                        programs(ceildiv(shape[2], chosen.bm), shape[1], shape[0]),
                        {q, k, v, o, lse, scale}}}};
}

} // namespace kiln
