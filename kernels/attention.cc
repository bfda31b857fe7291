// Flash attention, forward: Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning",
// 2023, algorithm 1. For each head
//
//     S = scale · Q · Kᵀ        P = softmax(S)        O = P · V        L_i = log2 Σ_j exp(S_ij)
//
// S and P are (Tq, Tk) and are never stored in memory. A program has a block of BM queries and iterates over blocks of
// BN keys. The softmax is computed in base 2, with c = scale · log2 e, because exp(scale · s) = 2^(c · s). After each
// block, m_i, l_i and acc cover the keys j so far:
//
//     m_i = max_j c · s_ij      l_i = Σ_j 2^(c · s_ij − m_i)      acc_i = Σ_j 2^(c · s_ij − m_i) · v_j
//
//     symbol  shape      meaning                        symbol  shape      meaning
//     q       (BM, D)    block of Q                     m_i     (BM)       running row maximum of c · S
//     k, v    (BN, D)    blocks of K and V              l_i     (BM)       running row sum of P
//     s       (BM, BN)   Q · Kᵀ, before the scale       acc     (BM, D)    running output, before the division by l_i
//     p       (BM, BN)   2^(c · s − m_i)                alpha   (BM)       2^(old m_i − new m_i), rescales l_i and acc
//     seen    (BM, BN)   mask: which scores count       o       (BM, D)    block of O
//     c       scalar     scale · log2 e                 L       (BM)       L_i of the block, `lse` in other files
//
// flashAttention() is the algorithm. Its options are functions:
//
//     RowSum                     row_sum_lanes             keyHead()      GQA                     (attention_mask.h)
//     finiteMax(), normalise()   rows without keys         visible()      causal, varlen, mask    (attention_mask.h)
//     dropWeights()              dropout
//
// Decode and split-KV are in attention_decode.cc, tile sizes in attention_tiles.cc, checks and launches in
// attention_plan.cc.

#include "kernels/attention_core.h"
#include "kernels/attention_plan.h"
#include "kernels/rows.h"

#include <cmath>

namespace kiln {

namespace {
/// l_i. With the option row_sum_lanes, a row has several partial sums, which are added after the loop. In the loop, a
/// thread then adds only the columns that it holds; threads exchange their sums once, at the end.
class RowSum {
public:
  explicit RowSum(const AttentionConfig &cfg)
      : BM(cfg.bm), BN(cfg.bn), lanes(cfg.rowSumLanes), l_i(zeros(f32, lanes > 1 ? Shape{BM, lanes} : Shape{BM})) {}
  /// l_i = alpha · l_i + rowsum(p)
  void update(const Tile &alpha, const Tile &p) {
    if (lanes > 1)
      l_i = fma(l_i, unsqueeze(alpha, -1), sum(reshape(p, {BM, BN / lanes, lanes}), 1)); // (BM, lanes)
    else
      l_i = fma(l_i, alpha, sum(p)); // (BM)
  }
  Tile total() const { return lanes > 1 ? sum(l_i) : l_i; } // (BM)

private:
  int64_t BM, BN, lanes;
  Tile l_i;
};
} // namespace

static Tile finiteMax(const Tile &m_i, const AttentionConfig &cfg);
static Tile dropWeights(const Tile &p, const Tile &col, const QueryBlock &in, const AttentionConfig &cfg);
static AttentionOut normalise(const Tile &acc, const Tile &m_i, const Tile &l_i, const QueryBlock &in,
                              const AttentionConfig &cfg);

//===-- Algorithm 1 ---------------------------------------------------------------------------------------------===//

AttentionOut flashAttention(const QueryBlock &in, const Bounds &keys, const AttentionConfig &cfg) {
  const int64_t BM = cfg.bm, BN = cfg.bn, D = in.D;
  Tile c = in.scale * M_LOG2E;                           // scalar
  Tile hk = keyHead(in.h, cfg);                          // scalar     option: GQA
  Tile q = load(in.q, {in.b, in.h, in.row, 0}, {BM, D}); // (BM, D)
  Tile m_i = full(f32, {BM}, -infinity);                 // (BM)
  RowSum l_i(cfg);                                       // (BM)       option: row_sum_lanes
  Tile acc = zeros(f32, {BM, D});                        // (BM, D)

  for (Tile col : range(keys.from, keys.to, BN)) {
    // 1. S = Q · Kᵀ. Decode attention is bound by memory latency, so it issues the loads of K and V together.
    Tile k = load(in.k, {in.b, hk, col, 0}, {BN, D}); // (BN, D)
    Tile v;                                           // (BN, D)
    if (cfg.decode)
      v = load(in.v, {in.b, hk, col, 0}, {BN, D});
    Tile s = cfg.decode ? decodeScores(q, k) : dot(q, transpose(k), cfg.precision); // (BM, BN)
    Tile seen = visible(in.row, col, in.mask, cfg); // (BM, BN)   options: causal, varlen, mask

    // 2. Online softmax: P relative to the new maximum, and alpha, which rescales the sums so far.
    Tile m_new = max(m_i, reduce_max(where(seen, s, -infinity)) * c); // (BM)
    Tile m_safe = finiteMax(m_new, cfg);                              // (BM)       option: rows without keys
    Tile p = exp2(fma(s, c, -unsqueeze(m_safe, -1)), Accuracy::fast); // (BM, BN)
    p = where(seen, p, 0.0);                                          // (BM, BN)
    Tile alpha = exp2(m_i - m_safe, Accuracy::fast);                  // (BM)
    l_i.update(alpha, p);
    m_i = m_new;

    // 3. O = alpha · O + P · V
    p = dropWeights(p, col, in, cfg); // (BM, BN)   option: dropout
    if (!cfg.decode)
      v = load(in.v, {in.b, hk, col, 0}, {BN, D});
    acc = acc * unsqueeze(alpha, -1);                                                           // (BM, D)
    acc = cfg.decode ? decodeOutput(p, v, acc) : dot(cast(p, v.type()), v, acc, cfg.precision); // (BM, D)
  }
  return normalise(acc, m_i, l_i.total(), in, cfg); // O = acc / l_i,  L = m_i + log2 l_i
}

//===-- Options -------------------------------------------------------------------------------------------------===//

/// Rows without keys: before its first visible key, a row has m_i = −∞, and −∞ − (−∞) would be NaN. Any finite value is
/// correct instead, because every p of the row is masked.
static Tile finiteMax(const Tile &m_i, const AttentionConfig &cfg) {
  return mayHaveEmptyRows(cfg) ? where(m_i == -infinity, 0.0, m_i) : m_i;
}

/// Dropout: sets dropped weights to zero. l_i still sums all weights; normalise() scales the kept ones.
static Tile dropWeights(const Tile &p, const Tile &col, const QueryBlock &in, const AttentionConfig &cfg) {
  return zeroMasked(keptWeights(in.row, col, in.h, in.dropout, cfg), p);
}

/// O = acc / l_i and L = m_i + log2 l_i. For a row without keys, O = 0 and L = ∞, so that p is 0 in the backward pass.
static AttentionOut normalise(const Tile &acc, const Tile &m_i, const Tile &l_i, const QueryBlock &in,
                              const AttentionConfig &cfg) {
  Tile inverse = 1.0 / l_i, L = m_i + log2(l_i); // (BM)
  if (mayHaveEmptyRows(cfg)) {
    inverse = where(l_i > 0.0, inverse, 0.0);
    L = where(l_i > 0.0, L, infinity);
  }
  return {acc * unsqueeze(scaleKept(inverse, in.dropout, cfg), -1), L};
}

//===-- The kernel ----------------------------------------------------------------------------------------------===//

QueryBlock queryBlock(const AttentionArgs &args, const Tile &row, const Tile &h, const Tile &b,
                      const AttentionConfig &cfg) {
  const auto &[q, k, v, o, ranges, bytes, scale, dropout] = args;
  QueryBlock in = {
      .q = q,
      .k = k,
      .v = v,
      .D = width({q, k, v, o}),
      .row = row,
      .h = h,
      .b = b,
      .scale = scale,
      .dropout = loadDropout(dropout, b, q.dim(1), cfg),
      .mask = {.bytes = bytes, .b = b, .h = h, .Tq = q.dim(2), .Tk = keyCount(k, q, cfg), .byQueries = true}};
  loadQueryBounds(in.mask, ranges, row, cfg);
  return in;
}

/// The kernel: one program computes a block of queries of one head. q, o (B, H, Tq, D); k, v (B, Hk, Tk, D);
/// lse (B, H, Tq); ranges (B, Tq, 2); mask (B, H, Tq, Tk).
static void attention(View q, View k, View v, View o, View lse, View ranges, View mask, Tile scale, View rngState,
                      Tile maxLength, Tile threshold, Tile keptScale, AttentionConfig cfg) {
  const auto [block, h, b] = tilePosition(cfg);
  Tile row = block * cfg.bm;
  const QueryBlock in =
      queryBlock({q, k, v, o, ranges, mask, scale, {rngState, maxLength, threshold, keptScale}}, row, h, b, cfg);
  const AttentionOut out = flashAttention(in, visibleKeys(row, ranges, in.mask, cfg), cfg);
  store(o, {b, h, row, 0}, cast(out.o, o.type()));
  store(lse, {b, h, row}, out.lse);
}

const Kernel attentionKernel =
    kernel("attention", attention,
           {"q (B, H, Tq, D)", "k (B, Hk, Tk, D) as q", "v (B, Hk, Tk, D) as q",
            "o (B, H, Tq, D) as q, softmax(q · kᵀ · scale) · v", "lse (B, H, Tq) f32, log-sum-exp (base 2)",
            aboutRanges, aboutMask, "scale f32", aboutRngState, aboutMaxLength, aboutThreshold, aboutKeptScale},
           attentionFields());

} // namespace kiln
