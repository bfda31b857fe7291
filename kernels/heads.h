// What attention's two passes share: which scores count, tiles, and the operands.

#pragma once

#include "kernels/attention.h"
#include "kernels/expect.h"

#include <algorithm>

namespace kiln {

/// Which of the scores of rows m … and columns n … count. Columns from T on do not exist; with `causal` a row sees its
/// own column and those before it, and rows from T on, which do not exist either, are not stored. Positions are counted
/// from the tile's corner, so that 32 bits hold them.
inline Tile visible(Tile m, Tile n, Tile T, const AttentionConfig &cfg) {
  Tile row = expand(iota(cfg.bm), -1);       // (BM, 1)
  Tile column = expand(iota(cfg.bn), 0);     // (1, BN)
  if (cfg.causal)                            // n + column ≤ m + row
    return column - row <= cast(m - n, i32); // (BM, BN)
  return column < cast(T - n, i32);          // (1, BN)
}

/// Tiles of about bm queries and about bn keys that split the sequence evenly, so that little of the last one lies past
/// the end. They are multiples of 8: a product computes so many rows at a time.
inline AttentionConfig tilesOf(int64_t bm, int64_t bn, int64_t T) {
  const auto evenly = [T](int64_t about) {
    const int64_t tiles = std::max<int64_t>(1, (T + about / 2) / about);
    return static_cast<int>(std::max<int64_t>(1, ceildiv(ceildiv(T, tiles), 8)) * 8);
  };
  AttentionConfig config;
  config.bm = evenly(bm);
  config.bn = evenly(bn);
  return config;
}

/// On a GPU: squares of a power of two, which instructions fit, no larger than the sequence, and so that six f32 tiles
/// of D columns fit a program's shared memory. So many warps that a thread holds 16 numbers of such a tile: several
/// are in use at once.
inline AttentionConfig gpuTilesOf(const GpuFacts &gpu, int64_t T, int64_t D) {
  AttentionConfig config;
  config.bm = D <= 64 ? 64 : 32;
  while (config.bm > 16 && (config.bm / 2 >= T || 6 * config.bm * D * bytesOf(f32) > gpu.ctaSharedBytes))
    config.bm /= 2;
  config.bn = config.bm;
  config.warps = config.bm * D > 32 * 4 * 16 ? 8 : 4;
  return config;
}

/// q, k, v and o of one shape and type, lse beside them. The shape.
inline Shape expectHeads(const char *plan, const TensorRef &q, const TensorRef &k, const TensorRef &v,
                         const TensorRef &o, const TensorRef &lse) {
  expectRank(plan, "q", q, 4);
  expectFloat(plan, "q", q);
  expectShape(plan, "k", k, q.extents);
  expectShape(plan, "v", v, q.extents);
  expectShape(plan, "o", o, q.extents);
  for (const TensorRef *tensor : {&k, &v, &o})
    expectType(plan, "k, v, o", *tensor, {q.type});
  expectShape(plan, "lse", lse, {q.extents[0], q.extents[1], q.extents[2]});
  expectType(plan, "lse", lse, {f32});
  return q.extents;
}

/// The fields of the config.
inline std::vector<Field> attentionFields() {
  return {field("bm", &AttentionConfig::bm, "rows of q a tile"),
          field("bn", &AttentionConfig::bn, "rows of k and v a tile"),
          field("causal", &AttentionConfig::causal, "row i sees columns 0 to i only"),
          field("precision", &AttentionConfig::precision, precisionNames, "of products of f32: ieee, tf32 or tf32x3"),
          field("warps", &AttentionConfig::warps, "warps of a program, on a GPU"),
          field("stages", &AttentionConfig::stages, "blocks of keys and values in flight or in use, on a GPU")};
}

} // namespace kiln
