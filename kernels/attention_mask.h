// Computes attention masks as tiles: the mask of a block of scores, and the range of keys that a block of queries sees.
// Also dropout of the weights. AttentionMask (attention.h) describes the masks on the host.
//
// `row` is the first query of a block of BM queries, `col` the first key of a block of BN keys. Fields of these structs
// that the config does not use are unset, and their views are not read.

#pragma once

#include "kernels/attention.h"

namespace kiln {

/// A range [from, to), or one range for each row.
struct Bounds {
  Tile from, to;
};

/// The operands of masking for one sequence and head.
struct ScoreMask {
  View bytes;     // (B, H, Tq, Tk) i8, if masked
  Tile b, h;      // scalars: sequence and query head
  Tile Tq, Tk;    // scalars
  Bounds bounds;  // if hasBounds: (BM, 1), the keys that each query sees, or (1, BN), the queries that see each key
  bool byQueries; // whether `bounds` belong to queries
  bool withTail = false; // keys from Tk on need no mask, because the caller stores no results of them
};

/// Number of keys. If it always equals the number of queries, it is the same IR value, so the compiler can use that.
inline Tile keyCount(View k, View q, const AttentionConfig &cfg) { return cfg.unequalLengths ? k.dim(2) : q.dim(2); }

/// Option GQA: the key head of query head `h`.
inline Tile keyHead(Tile h, const AttentionConfig &cfg) { return cfg.group == 1 ? h : h / cfg.group; }

//===-- Ranges (varlen, sliding window) -------------------------------------------------------------------------===//

/// Loads the ranges of `rows` rows from `at` on, (rows, 1) each. Checks that they are within [0, limit], from ≤ to, and
/// non-decreasing.
inline Bounds loadRanges(View ranges, Tile b, Tile at, int64_t rows, Tile limit) {
  const Shape shape = {rows, 1};
  const auto column = [&](const Tile &first, int which) { return load(ranges, {b, first, which}, shape); };
  Bounds own = {column(at, 0), column(at, 1)};
  Tile next = at + 1,
       isLast = unsqueeze(iota(rows), -1) + 1 >= cast(min(ranges.dim(1) - at, rows + 1), i32); // (rows, 1)
  device_assert((own.from >= 0) & (own.from <= own.to) & (cast(own.to, i64) <= limit),
                "expected ranges that lie within the rows or columns and do not end before they begin");
  device_assert(isLast | ((column(next, 0) >= own.from) & (column(next, 1) >= own.to)),
                "expected ranges that do not decrease from one row or column to the next");
  return {max(own.from, 0), max(own.to, 0)};
}

/// Loads the span of the ranges of `rows` rows from `at` on: from the first begin to the last end.
inline Bounds loadSpan(View ranges, Tile b, Tile at, int64_t rows) {
  Tile last = min(at + rows, ranges.dim(1)) - 1; // scalar
  Tile from = cast(load(ranges, {b, at, 0}, {}), i64), to = cast(load(ranges, {b, last, 1}, {}), i64);
  return {max(from, 0), to};
}

/// Loads the keys that each of BM queries sees, (BM, 1), into `mask`.
inline void loadQueryBounds(ScoreMask &mask, View ranges, Tile row, const AttentionConfig &cfg) {
  if (!cfg.hasBounds)
    return;
  auto [from, to] = loadRanges(ranges, mask.b, row, cfg.bm, mask.Tk); // (BM, 1)
  mask.bounds.from = from, mask.bounds.to = to;
}

/// Loads the queries that see each of BN keys, (1, BN), into `mask`.
inline void loadKeyBounds(ScoreMask &mask, View queryRanges, Tile col, const AttentionConfig &cfg) {
  if (!cfg.hasBounds)
    return;
  auto [from, to] = loadRanges(queryRanges, mask.b, col, cfg.bn, mask.Tq); // (BN, 1)
  mask.bounds.from = transpose(from), mask.bounds.to = transpose(to);      // (1, BN)
}

//===-- The mask of a block of scores ---------------------------------------------------------------------------===//

/// Offset of the causal diagonal: Tk − Tq.
inline Tile diagonalOffset(Tile Tq, Tile Tk, const AttentionConfig &cfg) {
  return cfg.unequalLengths ? Tk - Tq : zeros(i64, {});
}

/// Option causal: query i sees keys j ≤ i + Tk − Tq. (BM, BN). Positions are relative to the block's origin, so that
/// they fit in 32 bits.
inline Tile causalMask(Tile row, Tile col, Tile i, Tile j, const ScoreMask &mask, const AttentionConfig &cfg) {
  Tile limit = cfg.unequalLengths ? row - col + diagonalOffset(mask.Tq, mask.Tk, cfg) : row - col; // scalar
  return j - i <= cast(limit, i32);
}

/// The mask of the scores of queries from `row` and keys from `col` on, (BM, BN) or broadcastable to it; nothing if all
/// scores count. Keys from Tk on do not exist. Queries from Tq on do not exist either, and are not stored.
inline std::optional<Tile> maskOfScores(Tile row, Tile col, const ScoreMask &mask, const AttentionConfig &cfg) {
  Tile i = unsqueeze(iota(cfg.bm), -1); // (BM, 1)
  Tile j = unsqueeze(iota(cfg.bn), 0);  // (1, BN)
  std::optional<Tile> seen;
  const auto also = [&](const Tile &part) { seen = seen ? *seen & part : part; };
  if (cfg.causal)
    also(causalMask(row, col, i, j, mask, cfg)); // (BM, BN)
  else if (!cfg.hasBounds && !cfg.masked && !mask.withTail)
    also(j < cast(mask.Tk - col, i32)); // (1, BN)
  if (cfg.hasBounds) {
    Tile position = mask.byQueries ? j : i, origin = cast(mask.byQueries ? col : row, i32);
    also(position >= mask.bounds.from - origin); // (BM, BN)
    also(position < mask.bounds.to - origin);    // (BM, BN)
  }
  if (cfg.masked)
    also(load(mask.bytes, {mask.b, mask.h, row, col}, {cfg.bm, cfg.bn}) != 0); // (BM, BN)
  return seen;
}

/// maskOfScores() of a mask without `withTail`, which always excludes keys from Tk on.
inline Tile visible(Tile row, Tile col, const ScoreMask &mask, const AttentionConfig &cfg) {
  return maskOfScores(row, col, mask, cfg).value();
}

/// x where `mask` is true, otherwise 0. Without a mask, x.
inline Tile zeroMasked(const std::optional<Tile> &mask, Tile x) { return mask ? where(*mask, x, 0.0) : x; }

/// Whether a program may have rows without keys: queries that see none of its keys.
inline bool mayHaveEmptyRows(const AttentionConfig &cfg) {
  return cfg.hasBounds || cfg.masked || (cfg.causal && cfg.unequalLengths) || cfg.kvSplits > 1;
}

//===-- The blocks that a program visits ------------------------------------------------------------------------===//

/// The range of keys that the BM queries from `row` on see together. Blocks of keys outside are never visited.
inline Bounds visibleKeys(Tile row, View ranges, const ScoreMask &mask, const AttentionConfig &cfg) {
  Bounds keys = {zeros(i64, {}), mask.Tk};
  if (cfg.causal) // up to the diagonal of the block's last query
    keys.to = min(cfg.unequalLengths ? row + cfg.bm + diagonalOffset(mask.Tq, mask.Tk, cfg) : row + cfg.bm, mask.Tk);
  if (!cfg.hasBounds)
    return keys;
  Bounds own = loadSpan(ranges, mask.b, row, cfg.bm);
  if (cfg.dropout == DropoutMode::random) // random numbers are generated for whole blocks
    own.from = own.from / cfg.bn * cfg.bn;
  return {own.from, min(keys.to, own.to)};
}

/// The range of queries that see some of the BN keys from `col` on. With `causal` it begins at the block on the
/// diagonal.
inline Bounds visibleQueries(Tile col, View queryRanges, const ScoreMask &mask, const AttentionConfig &cfg) {
  Bounds queries = {zeros(i64, {}), mask.Tq};
  if (cfg.causal) {
    Tile first = cfg.unequalLengths ? max(col - diagonalOffset(mask.Tq, mask.Tk, cfg), 0) : col;
    queries.from = first / cfg.bm * cfg.bm;
  }
  if (!cfg.hasBounds)
    return queries;
  Bounds own = loadSpan(queryRanges, mask.b, col, cfg.bn);
  return {max(queries.from, own.from), min(queries.to, own.to)};
}

//===-- Dropout of the weights ----------------------------------------------------------------------------------===//

/// The dropout arguments of a kernel.
struct WeightDropoutArgs {
  View rngState;
  Tile maxLength, threshold, scale;
};

/// Dropout of attention weights; rows are numbered as in dropout_rng.h.
struct WeightDropout {
  Tile key, head; // key of the rngState; index of head 0 of sequence b among the step's heads. Only with random dropout
  Tile maxLength, threshold, scale;
};

/// Loads the dropout of sequence b of H heads.
inline WeightDropout loadDropout(const WeightDropoutArgs &args, Tile b, Tile H, const AttentionConfig &cfg) {
  WeightDropout dropout = {.maxLength = args.maxLength, .threshold = args.threshold, .scale = args.scale};
  if (cfg.dropout == DropoutMode::random)
    dropout.key = load(args.rngState, {0}, {}), dropout.head = (load(args.rngState, {1}, {}) + b) * H;
  return dropout;
}

/// The keep mask (BM, BN) of the weights of queries from `row` and keys from `col` on, of head h; nothing if all are
/// kept. `col` is a multiple of BN.
inline std::optional<Tile> keptWeights(Tile row, Tile col, Tile h, const WeightDropout &dropout,
                                       const AttentionConfig &cfg) {
  if (cfg.dropout != DropoutMode::random)
    return {};
  Tile rows = (dropout.head + h) * dropout.maxLength + row + iota(cfg.bm, i64);                  // (BM)
  return kept(dropout.key, rows, countUnits(dropout.maxLength), col, cfg.bn, dropout.threshold); // (BM, BN)
}

/// x times the scale of kept weights. x has an element for each weight, or for a sum of weights.
inline Tile scaleKept(Tile x, const WeightDropout &dropout, const AttentionConfig &cfg) {
  return cfg.dropout == DropoutMode::off ? x : x * dropout.scale;
}

} // namespace kiln
