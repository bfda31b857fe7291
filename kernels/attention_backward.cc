// Flash attention, backward: Dao, "FlashAttention-2", 2023, algorithm 2, without atomics. P is computed again from Q, K
// and the forward pass's L (`lse`), so nothing of the extents (Tq, Tk) is in memory. With c = scale · log2 e
//
//     P = 2^(c · Q · Kᵀ − L)      dP = dO · Vᵀ      delta_i = Σ_d dO_id · O_id      dS = P ∘ (dP − delta)
//     dV = Pᵀ · dO                dK = scale · dSᵀ · Q                               dQ = scale · dS · K
//
// With dropout, the weights are P̃ = P ∘ M · s, where M is the keep mask and s its scale. Then dV = P̃ᵀ · dO and
// dP = (dO · Vᵀ) ∘ M · s. delta needs no change, because O was made of P̃.
//
//     symbol            shape      meaning                       symbol      shape     meaning
//     q_i, do_i, dq_i   (BM, D)    block of Q, dO, dQ            L_i         (BM)      log-sum-exp of the rows
//     k_j, v_j          (BN, D)    blocks of K and V             delta_i     (BM)      row sums of dO ∘ O
//     dk_j, dv_j        (BN, D)    blocks of dK and dV           p, ds       (BM, BN)  blocks of P (P̃) and dS
//
// There are two plans. `attention_backward` has one program for each key head: it iterates over keys outside and over
// queries inside, and adds to dQ block by block. On a GPU that would leave most SMs idle, so there are two launches.
// `attention_backward_queries` computes delta and dQ by blocks of queries, `attention_backward_keys` dK and dV by
// blocks of keys. Scores are then computed twice, and no two programs add to one element.

#include "kernels/attention_mask.h"
#include "kernels/attention_plan.h"
#include "kernels/operands.h"
#include "kernels/rows.h"

#include <cmath>

namespace kiln {

namespace {
/// A block of P and dS: p is zero for dropped weights too, and ds is zero where the mask is false.
struct ScoreGradients {
  Tile p, ds;
};

/// A block of scores, and its options.
struct ScoreBlock {
  Tile row, col;
  const ScoreMask &mask;
  const WeightDropout &dropout;
  const AttentionConfig &cfg;
};

/// The layout of a block: whether it is (BN, BM), keys by queries, and whether `scale` is applied to the final sums of
/// dK and dQ.
struct BlockForm {
  bool transposed, scaledAtEnd;
};
} // namespace

//===-- P and dS of a block -------------------------------------------------------------------------------------===//

/// c · s − L, the exponents of P. Both forms are equal and differ in the negated operand. A GPU's FMA negates results
/// and sums at no cost, but no operand from memory. On a CPU each negation is an instruction, and L has fewer elements
/// than s.
static Tile exponents(Tile s, Tile L, Tile scale, bool negatesResult) {
  return negatesResult ? -fma(s, scale * -M_LOG2E, L) : fma(s, scale * M_LOG2E, -L);
}

/// P and dS of rows (BX, D) and columns (BY, D): queries with dO, and keys with V, or the reverse if `form.transposed`.
/// L and delta are (BX, 1) or (1, BY); both results are (BX, BY).
static ScoreGradients scoreGradients(Tile rows, Tile columns, Tile gradRows, Tile gradColumns, Tile L, Tile delta,
                                     Tile scale, const ScoreBlock &at, BlockForm form) {
  const AttentionConfig &cfg = at.cfg;
  const auto orient = [&](const std::optional<Tile> &mask) {
    return mask && form.transposed ? transpose(*mask) : mask;
  };
  const std::optional<Tile> seen = orient(maskOfScores(at.row, at.col, at.mask, cfg)), // (BX, BY)
      kept = orient(keptWeights(at.row, at.col, at.mask.h, at.dropout, cfg));          // (BX, BY)

  // 1. P is recomputed. Queries without keys have L = ∞, so p = 0. Queries from Tq on are zeros, and so are their dO:
  // their P does not matter.
  Tile s = dot(rows, transpose(columns), cfg.precision);                                     // (BX, BY)
  Tile p = zeroMasked(seen, exp2(exponents(s, L, scale, form.scaledAtEnd), Accuracy::fast)); // (BX, BY)

  // 2. dS. It is masked, so that dP need not be finite where P is zero.
  Tile dp =
      zeroMasked(kept, scaleKept(dot(gradRows, transpose(gradColumns), cfg.precision), at.dropout, cfg)); // (BX, BY)
  Tile ds = p * (dp - delta);                                                                             // (BX, BY)
  return {zeroMasked(kept, p), zeroMasked(seen, form.scaledAtEnd ? ds : ds * scale)};
}

/// delta_i = Σ_d dO_id · O_id of the queries from `row` on, (BM).
static Tile rowDelta(View o, Tile do_i, Tile b, Tile h, Tile row, Shape queries) {
  Tile o_i = cast(load(o, {b, h, row, 0}, queries), f32); // (BM, D)
  return sum(cast(do_i, f32) * o_i);                      // (BM)
}

/// Option GQA: calls `body` for the query heads that share key head `hk`, in order.
template <class Body> static void forQueryHeads(Tile hk, const AttentionConfig &cfg, Body body) {
  if (cfg.group == 1)
    return body(hk);
  for (Tile g : range(cfg.group))
    body(hk * cfg.group + g);
}

//===-- One launch: a program for each key head -----------------------------------------------------------------===//

/// q, o, dout, dq (B, H, Tq, D), k, v, dk, dv (B, Hk, Tk, D), lse and delta (B, H, Tq). dQ is summed in `dqSum`, which
/// is f32: dq itself if that is f32.
static void attentionBackward(View q, View k, View v, View o, View dout, View lse, View queryRanges, View mask,
                              View delta, View dqSum, View dq, View dk, View dv, Tile scale, View rngState,
                              Tile maxLength, Tile threshold, Tile keptScale, AttentionConfig cfg) {
  const int64_t D = width({q, k, v, o, dout, dqSum, dq, dk, dv});
  const Shape queries = {cfg.bm, D}, keys = {cfg.bn, D};
  Tile hk = program_id(0), b = program_id(1), Tq = q.dim(2), Tk = keyCount(k, q, cfg);
  const WeightDropout dropout = loadDropout({rngState, maxLength, threshold, keptScale}, b, q.dim(1), cfg);

  // 1. delta of every row, once. dQ = 0.
  forQueryHeads(hk, cfg, [&](Tile h) {
    for (Tile row : range(0, Tq, cfg.bm)) {
      Tile do_i = load(dout, {b, h, row, 0}, queries);                  // (BM, D)
      store(delta, {b, h, row}, rowDelta(o, do_i, b, h, row, queries)); // (BM)
      store(dqSum, {b, h, row, 0}, zeros(f32, queries));
    }
  });

  for (Tile col : range(0, Tk, cfg.bn)) {
    Tile k_j = load(k, {b, hk, col, 0}, keys);             // (BN, D)
    Tile v_j = load(v, {b, hk, col, 0}, keys);             // (BN, D)
    Tile dk_j = zeros(f32, keys), dv_j = zeros(f32, keys); // (BN, D)
    ScoreMask ofKeys = {.bytes = mask, .b = b, .h = hk, .Tq = Tq, .Tk = Tk, .byQueries = false};
    loadKeyBounds(ofKeys, queryRanges, col, cfg);
    auto [first, end] = visibleQueries(col, queryRanges, ofKeys, cfg);
    forQueryHeads(hk, cfg, [&](Tile h) {
      ScoreMask here = ofKeys;
      here.h = h;
      for (Tile row : range(first, end, cfg.bm)) {
        // 2. P and dS.
        Tile q_i = load(q, {b, h, row, 0}, queries);       // (BM, D)
        Tile do_i = load(dout, {b, h, row, 0}, queries);   // (BM, D)
        Tile L_i = load(lse, {b, h, row}, {cfg.bm});       // (BM)
        Tile delta_i = load(delta, {b, h, row}, {cfg.bm}); // (BM)
        auto [p, ds] =
            scoreGradients(q_i, k_j, do_i, v_j, unsqueeze(L_i, -1), unsqueeze(delta_i, -1), scale,
                           {row, col, here, dropout, cfg}, {.transposed = false, .scaledAtEnd = false}); // (BM, BN)

        // 3. dV += P̃ᵀ · dO, dK += dSᵀ · Q, dQ += dS · K. The outer loop fixes the order of the sums of dQ.
        dv_j = dot(transpose(cast(p, dout.type())), do_i, dv_j, cfg.precision); // (BN, D)
        Tile ds_narrow = cast(ds, q.type());                                    // (BM, BN)
        dk_j = dot(transpose(ds_narrow), q_i, dk_j, cfg.precision);             // (BN, D)
        store(dqSum, {b, h, row, 0}, dot(ds_narrow, k_j, load(dqSum, {b, h, row, 0}, queries), cfg.precision));
      }
    });
    store(dk, {b, hk, col, 0}, cast(dk_j, dk.type()));
    store(dv, {b, hk, col, 0}, cast(scaleKept(dv_j, dropout, cfg), dv.type()));
  }

  // 4. Narrow storage: round the finished sums.
  if (dq.type() == f32)
    return;
  forQueryHeads(hk, cfg, [&](Tile h) {
    for (Tile row : range(0, Tq, cfg.bm))
      store(dq, {b, h, row, 0}, cast(load(dqSum, {b, h, row, 0}, queries), dq.type()));
  });
}

//===-- Two launches: blocks of queries, blocks of keys ---------------------------------------------------------===//

/// delta and dQ of a block of queries.
static void attentionBackwardQueries(View q, View k, View v, View o, View dout, View lse, View ranges, View mask,
                                     View delta, View dq, Tile scale, View rngState, Tile maxLength, Tile threshold,
                                     Tile keptScale, AttentionConfig cfg) {
  const int64_t D = width({q, k, v, o, dout, dq});
  const Shape queries = {cfg.bm, D}, keys = {cfg.bn, D};
  auto [block, h, b] = tilePosition(cfg);
  Tile row = block * cfg.bm, hk = keyHead(h, cfg);
  const WeightDropout dropout = loadDropout({rngState, maxLength, threshold, keptScale}, b, q.dim(1), cfg);
  ScoreMask ofQueries = {.bytes = mask, .b = b, .h = h, .Tq = q.dim(2), .Tk = keyCount(k, q, cfg), .byQueries = true};
  loadQueryBounds(ofQueries, ranges, row, cfg);
  Tile q_i = load(q, {b, h, row, 0}, queries);          // (BM, D)
  Tile do_i = load(dout, {b, h, row, 0}, queries);      // (BM, D)
  Tile L_i = load(lse, {b, h, row}, {cfg.bm});          // (BM)
  Tile delta_i = rowDelta(o, do_i, b, h, row, queries); // (BM)
  store(delta, {b, h, row}, delta_i);
  Tile dq_i = zeros(f32, queries); // (BM, D)
  auto [first, end] = visibleKeys(row, ranges, ofQueries, cfg);
  for (Tile col : range(first, end, cfg.bn)) {
    Tile k_j = load(k, {b, hk, col, 0}, keys); // (BN, D)
    Tile v_j = load(v, {b, hk, col, 0}, keys); // (BN, D)
    auto [p, ds] =
        scoreGradients(q_i, k_j, do_i, v_j, unsqueeze(L_i, -1), unsqueeze(delta_i, -1), scale,
                       {row, col, ofQueries, dropout, cfg}, {.transposed = false, .scaledAtEnd = true}); // (BM, BN)
    dq_i = dot(cast(ds, q.type()), k_j, dq_i, cfg.precision);                                            // (BM, D)
  }
  store(dq, {b, h, row, 0}, cast(dq_i * scale, dq.type()));
}

/// dK and dV of a block of keys. Scores are transposed, (BN, BM), so that they are left operands of both products
/// without a transposition. Keys from Tk on need no mask, because their rows of dK and dV are not stored.
static void attentionBackwardKeys(View q, View k, View v, View dout, View lse, View queryRanges, View mask, View delta,
                                  View dk, View dv, Tile scale, View rngState, Tile maxLength, Tile threshold,
                                  Tile keptScale, AttentionConfig cfg) {
  const int64_t D = width({q, k, v, dout, dk, dv});
  const Shape queries = {cfg.bm, D}, keys = {cfg.bn, D};
  Tile col = program_id(0) * cfg.bn, hk = program_id(1), b = program_id(2);
  const WeightDropout dropout = loadDropout({rngState, maxLength, threshold, keptScale}, b, q.dim(1), cfg);
  Tile k_j = load(k, {b, hk, col, 0}, keys);             // (BN, D)
  Tile v_j = load(v, {b, hk, col, 0}, keys);             // (BN, D)
  Tile dk_j = zeros(f32, keys), dv_j = zeros(f32, keys); // (BN, D)
  ScoreMask ofKeys = {
      .bytes = mask, .b = b, .h = hk, .Tq = q.dim(2), .Tk = keyCount(k, q, cfg), .byQueries = false, .withTail = true};
  loadKeyBounds(ofKeys, queryRanges, col, cfg);
  auto [first, end] = visibleQueries(col, queryRanges, ofKeys, cfg);
  forQueryHeads(hk, cfg, [&](Tile h) {
    ScoreMask here = ofKeys;
    here.h = h;
    for (Tile row : range(first, end, cfg.bm)) {
      Tile q_i = load(q, {b, h, row, 0}, queries);       // (BM, D)
      Tile do_i = load(dout, {b, h, row, 0}, queries);   // (BM, D)
      Tile L_i = load(lse, {b, h, row}, {cfg.bm});       // (BM)
      Tile delta_i = load(delta, {b, h, row}, {cfg.bm}); // (BM)
      auto [p, ds] =
          scoreGradients(k_j, q_i, v_j, do_i, unsqueeze(L_i, 0), unsqueeze(delta_i, 0), scale,
                         {row, col, here, dropout, cfg}, {.transposed = true, .scaledAtEnd = true}); // (BN, BM)
      dv_j = dot(cast(p, dout.type()), do_i, dv_j, cfg.precision);                                   // (BN, D)
      dk_j = dot(cast(ds, q.type()), q_i, dk_j, cfg.precision);                                      // (BN, D)
    }
  });
  store(dk, {b, hk, col, 0}, cast(dk_j * scale, dk.type()));
  store(dv, {b, hk, col, 0}, cast(scaleKept(dv_j, dropout, cfg), dv.type()));
}

//===-- Registration --------------------------------------------------------------------------------------------===//

static const char *const aboutColumnRanges =
                             "query_ranges (B, Tk, 2) i32, read with has_bounds: the queries that attend to a key",
                         *const aboutLse = "lse (B, H, Tq) f32, the forward pass's";

const Kernel attentionBackwardKernel =
    kernel("attention_backward", attentionBackward,
           {"q (B, H, Tq, D)", "k (B, Hk, Tk, D) as q", "v (B, Hk, Tk, D) as q", "o (B, H, Tq, D), the forward pass's",
            "dout (B, H, Tq, D) as q", aboutLse, aboutColumnRanges, aboutMask, "delta (B, H, Tq) f32, scratch",
            "dq_sum (B, H, Tq, D) f32, scratch, or dq itself", "dq (B, H, Tq, D)", "dk (B, Hk, Tk, D)",
            "dv (B, Hk, Tk, D)", "scale f32", aboutRngState, aboutMaxLength, aboutThreshold, aboutKeptScale},
           attentionFields());
const Kernel attentionBackwardQueriesKernel = withoutNamedExtents(
    kernel("attention_backward_queries", attentionBackwardQueries,
           {"q (B, H, Tq, D)", "k (B, Hk, Tk, D)", "v (B, Hk, Tk, D)", "o (B, H, Tq, D), the forward pass's",
            "dout (B, H, Tq, D)", aboutLse, aboutRanges, aboutMask, "delta (B, H, Tq) f32, row sums of o · dout",
            "dq (B, H, Tq, D)", "scale f32", aboutRngState, aboutMaxLength, aboutThreshold, aboutKeptScale},
           attentionFields()));
const Kernel attentionBackwardKeysKernel = withoutNamedExtents(
    kernel("attention_backward_keys", attentionBackwardKeys,
           {"q (B, H, Tq, D)", "k (B, Hk, Tk, D)", "v (B, Hk, Tk, D)", "dout (B, H, Tq, D)", aboutLse,
            aboutColumnRanges, aboutMask, "delta (B, H, Tq) f32", "dk (B, Hk, Tk, D)", "dv (B, Hk, Tk, D)", "scale f32",
            aboutRngState, aboutMaxLength, aboutThreshold, aboutKeptScale},
           attentionFields()));

} // namespace kiln
