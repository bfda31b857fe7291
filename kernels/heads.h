// Parts that the forward and the backward pass of attention share: masks, tile sizes and checks of operands.

#pragma once

#include "kernels/attention.h"
#include "kernels/expect.h"

#include <algorithm>

namespace kiln {

/// Keys of a block. tf32x3 takes fewer, because it splits each operand into two numbers, a register each.
inline int keysOfBlock(const AttentionConfig &config) {
  return config.precision == Precision::tf32x3 ? std::min(config.bn, 32) : config.bn;
}

/// The operands of masking, for one batch and query head. Views that the config does not use are not read.
struct Sight {
  View mask;      // (B, H, Tq, Tk) i8, when masked
  Tile b, h;      // scalars
  Tile Tq, Tk;    // scalars
  Tile from, to;  // with hasBounds: (BM, 1), the keys that each query sees, or (1, BN), the queries that see each key
  bool byQueries; // whether `from` and `to` belong to queries
  bool anyKeys = false; // keys from Tk on may be unmasked, because the caller stores none of their results
};

/// A pair of ranges, or begin and end of a block of them.
struct Bounds {
  Tile from, to;
};

/// The ranges of `rows` rows from `at` on, (rows, 1) each. Checks that they are within [0, limit], from ≤ to, and
/// non-decreasing.
inline Bounds rangesOf(View ranges, Tile b, Tile at, int64_t rows, Tile limit) {
  const Shape shape = {rows, 1};
  const auto column = [&](const Tile &from, int which) { return load(ranges, {b, from, which}, shape); };
  Bounds own = {column(at, 0), column(at, 1)};
  Tile next = at + 1,
       isLast = unsqueeze(iota(rows), -1) + 1 >= cast(min(ranges.dim(1) - at, rows + 1), i32); // (rows, 1)
  device_assert((own.from >= 0) & (own.from <= own.to) & (cast(own.to, i64) <= limit),
                "expected ranges that lie within the rows or columns and do not end before they begin");
  device_assert(isLast | ((column(next, 0) >= own.from) & (column(next, 1) >= own.to)),
                "expected ranges that do not decrease from one row or column to the next");
  return {max(own.from, 0), max(own.to, 0)};
}

/// The span of the ranges of `rows` rows from `at` on: from the first begin to the last end.
inline Bounds spanOf(View ranges, Tile b, Tile at, int64_t rows) {
  Tile last = min(at + rows, ranges.dim(1)) - 1; // scalar
  Tile from = cast(load(ranges, {b, at, 0}, {}), i64), to = cast(load(ranges, {b, last, 1}, {}), i64);
  return {max(from, 0), to};
}

/// Loads into `sight` the keys that the queries from m on see.
inline void lookByQueries(Sight &sight, View ranges, Tile m, const AttentionConfig &cfg) {
  if (!cfg.hasBounds)
    return;
  auto [from, to] = rangesOf(ranges, sight.b, m, cfg.bm, sight.Tk); // (BM, 1)
  sight.from = from, sight.to = to;
}

/// Offset of the causal diagonal: Tk − Tq.
inline Tile shiftOf(Tile Tq, Tile Tk, const AttentionConfig &cfg) {
  return cfg.unequalLengths ? Tk - Tq : zeros(i64, {});
}

/// The mask of scores of queries m … and keys n …, (BM, BN) or broadcastable to it; nothing if all scores count. Keys
/// from Tk on do not exist. With `causal` a query sees its own key and earlier ones. Queries from Tq on do not exist
/// either, and are not stored. Positions are counted from the tile's origin, so that 32 bits hold them.
inline std::optional<Tile> visible(Tile m, Tile n, const Sight &sight, const AttentionConfig &cfg) {
  Tile row = unsqueeze(iota(cfg.bm), -1);   // (BM, 1)
  Tile column = unsqueeze(iota(cfg.bn), 0); // (1, BN)
  std::optional<Tile> seen;
  const auto also = [&](const Tile &part) { seen = seen ? *seen & part : part; };
  if (cfg.causal) { // n + column ≤ m + row + shift
    Tile limit = cfg.unequalLengths ? m - n + shiftOf(sight.Tq, sight.Tk, cfg) : m - n;
    also(column - row <= cast(limit, i32)); // (BM, BN)
  } else if (!cfg.hasBounds && !cfg.masked && !sight.anyKeys) {
    also(column < cast(sight.Tk - n, i32)); // (1, BN)
  }
  if (cfg.hasBounds) {
    Tile position = sight.byQueries ? column : row, corner = cast(sight.byQueries ? n : m, i32);
    also(position >= sight.from - corner); // (BM, BN)
    also(position < sight.to - corner);    // (BM, BN)
  }
  if (cfg.masked)
    also(load(sight.mask, {sight.b, sight.h, m, n}, {cfg.bm, cfg.bn}) != 0); // (BM, BN)
  return seen;
}

/// x where `mask` is true, otherwise 0. Without a mask, x.
inline Tile masked(const std::optional<Tile> &mask, Tile x) { return mask ? where(*mask, x, 0.0) : x; }

/// Whether a query may see none of the keys of a program (a fully masked row).
inline bool mayBeBlind(const AttentionConfig &cfg) {
  return cfg.hasBounds || cfg.masked || (cfg.causal && cfg.unequalLengths) || cfg.kvSplits > 1;
}

/// The range [from, to) of keys that the queries m … see together.
inline Bounds keysOf(Tile m, View ranges, const Sight &sight, const AttentionConfig &cfg) {
  Bounds keys = {zeros(i64, {}), sight.Tk};
  if (cfg.causal) // beyond the block's last row
    keys.to = min(cfg.unequalLengths ? m + cfg.bm + shiftOf(sight.Tq, sight.Tk, cfg) : m + cfg.bm, sight.Tk);
  if (!cfg.hasBounds)
    return keys;
  Bounds own = spanOf(ranges, sight.b, m, cfg.bm);
  if (cfg.drop == DropoutMode::random) // whose random numbers come in whole blocks
    own.from = own.from / cfg.bn * cfg.bn;
  return {own.from, min(keys.to, own.to)};
}

/// The range [from, to) of queries that see some of the keys n …. With `causal` it begins at the block on the diagonal.
inline Bounds queriesOf(Tile n, View columnRanges, const Sight &sight, const AttentionConfig &cfg) {
  Bounds queries = {zeros(i64, {}), sight.Tq};
  if (cfg.causal) {
    Tile first = cfg.unequalLengths ? max(n - shiftOf(sight.Tq, sight.Tk, cfg), 0) : n;
    queries.from = first / cfg.bm * cfg.bm;
  }
  if (!cfg.hasBounds)
    return queries;
  Bounds own = spanOf(columnRanges, sight.b, n, cfg.bn);
  return {max(queries.from, own.from), min(queries.to, own.to)};
}

/// Dropout of attention weights, in terms of the rows of chances.h.
struct WeightDropout {
  Tile key, head; // of the site; row number of head 0 of sequence b in the step. Only with random dropout
  Tile most, threshold, scale;
};

/// Reads WeightDropout from a kernel's arguments, for sequence b of H heads.
inline WeightDropout dropoutFrom(View site, Tile most, Tile threshold, Tile scale, Tile b, Tile H,
                                 const AttentionConfig &cfg) {
  WeightDropout dropout = {.most = most, .threshold = threshold, .scale = scale};
  if (cfg.drop == DropoutMode::random)
    dropout.key = load(site, {0}, {}), dropout.head = (load(site, {1}, {}) + b) * H;
  return dropout;
}

/// The keep mask (BM, BN) of the weights of queries m … and keys n … of head h; nothing if all are kept. n is a
/// multiple of BN.
inline std::optional<Tile> keptWeights(Tile m, Tile n, Tile h, const WeightDropout &dropout,
                                       const AttentionConfig &cfg) {
  if (cfg.drop != DropoutMode::random)
    return {};
  Tile row = (dropout.head + h) * dropout.most + m + iota(cfg.bm, i64);               // (BM)
  return kept(dropout.key, row, unitsOf(dropout.most), n, cfg.bn, dropout.threshold); // (BM, BN)
}

/// Scales `x`, an element for each weight or a sum of them, as dropout scales kept weights.
inline Tile scaled(Tile x, const WeightDropout &dropout, const AttentionConfig &cfg) {
  return cfg.drop == DropoutMode::off ? x : x * dropout.scale;
}

/// Number of keys. If it equals the number of queries, the compiler knows so.
inline Tile keysIn(View k, View q, const AttentionConfig &cfg) { return cfg.unequalLengths ? k.dim(2) : q.dim(2); }

/// The key head of a query head (GQA).
inline Tile keyHeadOf(Tile h, const AttentionConfig &cfg) { return cfg.group == 1 ? h : h / cfg.group; }

/// Extents of an attention problem.
struct AttentionExtents {
  int64_t B, H, Hk, Tq, Tk, D;
  Shape queries() const { return {B, H, Tq, D}; }
  Shape keys() const { return {B, Hk, Tk, D}; }
};

/// The work of a program: a block of queries of one head.
struct Turn {
  Tile block, h, b; // scalars
};

/// The block of this program in the grid of `turnsOf`. With `longestFirst`, the last blocks of all heads come first,
/// because they see most keys. Otherwise heads come one after the other.
inline Turn turnOf(const AttentionConfig &cfg) {
  if (!cfg.longestFirst)
    return {program_id(0), program_id(1), program_id(2)};
  return {max(num_programs(2) - 1 - program_id(2), 0), program_id(0), program_id(1)};
}

/// The grid with a program for each block of each head.
inline Grid turnsOf(const AttentionConfig &cfg, int64_t blocks, int64_t H, int64_t B) {
  return cfg.longestFirst ? programs(H, B, blocks) : programs(blocks, H, B);
}

/// Whether a GPU launches the longest blocks of all heads first. CTAs start in order, and a long one that starts last
/// keeps the other SMs waiting. Keys and values of all heads are then in use at once and must fit the L2 cache. If they
/// do not, there are many more programs than the last ones.
inline bool takesLongestFirst(const Target &target, const AttentionExtents &e, Type type, bool causal) {
  constexpr int64_t most = 65535; // programs of a GPU's grid, except along its first dimension
  const int64_t bytes = 2 * e.B * e.Hk * e.Tk * e.D * bytesOf(type);
  return target.visit([](const CpuFacts &) { return false; },
                      [&](const GpuFacts &gpu) {
                        return causal && !target.elastic && bytes <= gpu.l2Bytes && e.B <= most && e.Tq <= most;
                      });
}

/// Tiles of about bm queries and about bn keys that split the sequences evenly, so that little of the last tile is out
/// of bounds. They are multiples of 8 if there are as many rows, because `dot` computes 8 at a time.
inline AttentionConfig tilesOf(int64_t bm, int64_t bn, int64_t Tq, int64_t Tk) {
  const auto evenly = [](int64_t about, int64_t T) {
    if (T < 8)
      return static_cast<int>(std::max<int64_t>(T, 1));
    const int64_t tiles = std::max<int64_t>(1, (T + about / 2) / about);
    return static_cast<int>(std::max<int64_t>(1, cdiv(cdiv(T, tiles), 8)) * 8);
  };
  AttentionConfig config;
  config.bm = evenly(bm, Tq);
  config.bn = evenly(bn, Tk);
  return config;
}

/// On a GPU: square tiles of a power of two, which tensor-core instructions fit. They are no larger than the sequence,
/// and six f32 tiles of D columns fit a CTA's shared memory. The number of warps gives a thread 16 elements of such a
/// tile, because several tiles are live at once.
inline AttentionConfig gpuTilesOf(const GpuFacts &gpu, int64_t T, int64_t D) {
  AttentionConfig config;
  config.bm = D <= 64 ? 64 : 32;
  while (config.bm > 16 && (config.bm / 2 >= T || 6 * config.bm * D * bytesOf(f32) > gpu.ctaSharedBytes))
    config.bm /= 2;
  config.bn = config.bm;
  config.warps = config.bm * D > 32 * 4 * 16 ? 8 : 4;
  return config;
}

/// Checks q, k, v and o, which have one type, the mask's operands and the scale.
AttentionExtents expectHeads(const char *plan, const TensorRef &q, const TensorRef &k, const TensorRef &v,
                             const TensorRef &o, const AttentionMask &mask, float scale);
/// Checks lse against these extents.
void expectSums(const char *plan, const TensorRef &lse, const AttentionExtents &extents);

/// The config of a problem: the given tiles or the picked ones, completed by the flags that mask and extents require.
AttentionConfig configFor(const std::optional<AttentionConfig> &given, AttentionConfig picked,
                          const AttentionExtents &extents, const AttentionMask &mask);

/// The mask broadcast to (B, H, Tq, Tk); `other` without a mask.
TensorRef wholeMask(const AttentionMask &mask, const AttentionExtents &extents, const TensorRef &other);

/// Appends the dropout arguments to a launch. `unused` stands for the tensor if the kernel does not read it.
void appendDropout(std::vector<Arg> &args, const AttentionMask &mask, const Arg &unused);

/// Whether warpgroups (wgmma) read the right operands of their products, with rows of `D` elements, from shared memory.
inline bool isForGroups(const GpuFacts &gpu, int64_t D, Type type) {
  const auto isPowerOf2 = (D & (D - 1)) == 0;
  return gpu.architecture == 90 && bytesOf(type) == 2 && isPowerOf2 && D >= 16 && D <= 64;
}

/// Whether each warp uses tensor cores by itself, with all operands in registers. Masks then take scarce registers.
inline bool isByWarps(const Target &target, const AttentionConfig &config, int64_t D, Type type) {
  const bool isExact = type == f32 && config.precision == Precision::ieee;
  return target.visit([](const CpuFacts &) { return false; },
                      [=](const GpuFacts &gpu) { return !isExact && !isForGroups(gpu, D, type); });
}

/// Texts of these arguments in the registrations.
inline constexpr const char *ofSite = "site (2) i64, read by chance: the key and the number of the first sequence",
                            *ofMost = "most i64, queries and keys that a sequence may have",
                            *ofThreshold = "threshold i64, of 65536 chances those that drop",
                            *ofKeptScale = "kept_scale f32, what weights that are kept are multiplied by";

/// The fields of the config.
inline std::vector<Field> attentionFields() {
  return {field("bm", &AttentionConfig::bm, "rows of q a tile"),
          field("bn", &AttentionConfig::bn, "rows of k and v a tile"),
          field("causal", &AttentionConfig::causal, "row i sees columns up to i + Tk − Tq only"),
          field("unequal_lengths", &AttentionConfig::unequalLengths, "Tk is not Tq"),
          field("has_bounds", &AttentionConfig::hasBounds, "ranges say what rows see"),
          field("masked", &AttentionConfig::masked, "a mask says what rows see"),
          field("group", &AttentionConfig::group, "heads of q that share one of k and v"),
          field("drop", &AttentionConfig::drop, dropoutModeNames, "dropout: off, scale_only or random"),
          field("precision", &AttentionConfig::precision, precisionNames,
                "of products of f32: ieee, tf32, tf32x3 or bf16x3"),
          field("warps", &AttentionConfig::warps, "warps of a program, on a GPU"),
          field("row_sum_lanes", &AttentionConfig::rowSumLanes, "of a row's probabilities, side by side"),
          field("decode", &AttentionConfig::decode, "a query is multiplied elementwise, bm = 1"),
          field("kv_splits", &AttentionConfig::kvSplits, "programs that share the keys of a query (attention_split)"),
          field("longest_first", &AttentionConfig::longestFirst, "the longest blocks of all heads come first"),
          field("stages", &AttentionConfig::stages, "blocks of keys and values in flight or in use, on a GPU"),
          field("min_ctas_per_sm", &AttentionConfig::minCtasPerSm, "minimum resident CTAs per SM")};
}

} // namespace kiln
