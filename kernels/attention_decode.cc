// Attention of few queries over many keys, as in decoding. One query has one program for each head, which leaves most
// of a GPU idle. So P programs share the keys of a block of queries (split-KV, as in flash-decoding), and a second
// launch combines their results. With the option `decode` a single query is multiplied elementwise with keys and
// values. `dot` would compute a whole tile of queries.
//
// The combination is the online softmax of attention.cc once more, over the parts instead of the keys: with L_p and O_p
// of part p,
//
//     m = max_p L_p      w_p = 2^(L_p − m)      O = Σ_p w_p · O_p / Σ_p w_p      L = m + log2 Σ_p w_p

#include "kernels/attention_core.h"
#include "kernels/attention_plan.h"
#include "kernels/rows.h"

namespace kiln {

Tile decodeScores(const Tile &q, const Tile &k) { return unsqueeze(sum(cast(q, f32) * cast(k, f32)), 0); }
Tile decodeOutput(const Tile &p, const Tile &v, const Tile &acc) {
  return acc + sum(transpose(p) * cast(v, f32), 0, keep);
}

/// Part `part` of a range of keys: all parts have equally many whole blocks, from the first key on.
static Bounds splitKeys(const Bounds &keys, const Tile &part, const AttentionConfig &cfg) {
  const int64_t step = cfg.kvSplits * cfg.bn; // keys of one block of each part
  Tile length = (max(keys.to - keys.from, 0) + (step - 1)) / step * cfg.bn;
  Tile begin = keys.from + part * length;
  return {begin, min(begin + length, keys.to)};
}

/// Attention over one part of the keys. o (P, N, Tq, D), lse (P, N, Tq), with N = B · H.
static void attentionSplit(View q, View k, View v, View o, View lse, View ranges, View mask, Tile scale, View rngState,
                           Tile maxLength, Tile threshold, Tile keptScale, AttentionConfig cfg) {
  Tile part = program_id(0) % cfg.kvSplits, row = program_id(0) / cfg.kvSplits * cfg.bm, h = program_id(1),
       b = program_id(2);
  const QueryBlock in =
      queryBlock({q, k, v, o, ranges, mask, scale, {rngState, maxLength, threshold, keptScale}}, row, h, b, cfg);
  const Bounds keys = visibleKeys(row, ranges, in.mask, cfg);
  const AttentionOut out = flashAttention(in, splitKeys(keys, part, cfg), cfg);
  Tile n = b * q.dim(1) + h;
  store(o, {part, n, row, 0}, out.o);
  store(lse, {part, n, row}, out.lse);
}

/// Combines the parts, in order. A part of which a query sees no key has L = ∞ and the weight 0.
static void attentionCombine(View os, View lses, View o, View lse, AttentionConfig cfg) {
  const int64_t D = width({os, o}), P = cfg.kvSplits, BM = cfg.bm;
  Tile row = program_id(0) * BM, h = program_id(1), b = program_id(2), n = b * o.dim(1) + h;
  Tile L_p = reshape(load(lses, {0, n, row}, {P, 1, BM}), {P, BM});          // (P, BM)
  Tile o_p = reshape(load(os, {0, n, row, 0}, {P, 1, BM, D}), {P, BM, D});   // (P, BM, D)
  Tile isEmpty = L_p == infinity;                                            // (P, BM)
  Tile m = reduce_max(where(isEmpty, -infinity, L_p), 0);                    // (BM)
  Tile w = where(isEmpty, 0.0, exp2(L_p - unsqueeze(m, 0), Accuracy::fast)); // (P, BM)
  Tile l = sum(w, 0);                                                        // (BM)
  Tile acc = sum(o_p * unsqueeze(w, -1), 0);                                 // (BM, D)
  Tile seesNone = l == 0.0;                                                  // (BM)
  store(o, {b, h, row, 0}, cast(acc * unsqueeze(where(seesNone, 0.0, 1.0 / l), -1), o.type()));
  store(lse, {b, h, row}, where(seesNone, infinity, m + log2(l)));
}

const Kernel attentionSplitKernel =
    kernel("attention_split", attentionSplit,
           {"q (B, H, Tq, D)", "k (B, Hk, Tk, D)", "v (B, Hk, Tk, D)",
            "o (P, N, Tq, D) f32, attention of each split, N = B · H",
            "lse (P, N, Tq) f32, log-sum-exp (base 2) of each split", aboutRanges, aboutMask, "scale f32",
            aboutRngState, aboutMaxLength, aboutThreshold, aboutKeptScale},
           attentionFields());
const Kernel attentionCombineKernel = kernel("attention_combine", attentionCombine,
                                             {"os (P, N, Tq, D) f32, attention of each split, N = B · H",
                                              "lses (P, N, Tq) f32, their log-sum-exp (base 2)",
                                              "o (B, H, Tq, D), attention over all keys", "lse (B, H, Tq) f32"},
                                             {field("bm", &AttentionConfig::bm, "rows of q a program"),
                                              field("kv_splits", &AttentionConfig::kvSplits, "splits of the keys"),
                                              field("warps", &AttentionConfig::warps, "warps of a program, on a GPU")});

} // namespace kiln
