// Chapter 8: causal attention without the (T, T) matrix in memory, FlashAttention-2 (Dao, 2023), algorithm 1.
//
// For one head, with queries Q, keys K and values V of shape (T, D):
//
//     S = Q · Kᵀ / √D,   P = softmax(S) over the keys j ≤ i,   O = P · V,   L_i = log Σ_j exp(S_ij)

#include <kiln/dialect/dsl/Kernel.h>

#include <cmath>

using namespace kiln;

struct AttentionConfig {
  int bm = 32; // queries of a program
  int bn = 32; // keys of an iteration
};

// q, k, v, o (H, T, D), lse (H, T). The grid is (⌈T / bm⌉, H): a program computes BM rows of one head's O.
//
// After each iteration, over the keys j so far, with scores s_j in base 2:
//
//     m_i = max_j s_j,   l_i = Σ_j 2^(s_j − m_i),   acc = Σ_j 2^(s_j − m_i) · v_j
static void attention(View q, View k, View v, View o, View lse, AttentionConfig cfg) {
  const int64_t BM = cfg.bm, BN = cfg.bn, D = q.extent(2);
  const double scale = M_LOG2E / std::sqrt(D); // exp(x) = 2^(x · log2 e)
  Tile i = program_id(0) * BM, h = program_id(1);
  Tile rows = i + iota(BM, i64);          // (BM)
  Tile q_i = load(q, {h, i, 0}, {BM, D}); // (BM, D)
  Tile m_i = full(f32, {BM}, -infinity);  // (BM)
  Tile l_i = zeros(f32, {BM});            // (BM)
  Tile acc = zeros(f32, {BM, D});         // (BM, D)

  for (Tile j : range(0, min(i + BM, k.dim(1)), BN)) { // no query of the block sees a later key
    // 1. S = Q · Kᵀ / √D, and −∞ for the keys after the query.
    Tile k_j = load(k, {h, j, 0}, {BN, D});                  // (BN, D)
    Tile s = dot(q_i, transpose(k_j)) * scale;               // (BM, BN)
    Tile columns = j + iota(BN, i64);                        // (BN)
    s = where(columns <= unsqueeze(rows, -1), s, -infinity); // (BM, BN)

    // 2. The softmax so far, relative to the new maximum. alpha rescales the sums, which are relative to the old one.
    Tile m_new = max(m_i, reduce_max(s));    // (BM)
    Tile p = exp2(s - unsqueeze(m_new, -1)); // (BM, BN)
    Tile alpha = exp2(m_i - m_new);          // (BM)
    l_i = l_i * alpha + sum(p);              // (BM)
    m_i = m_new;                             // (BM)

    // 3. O = P · V.
    Tile v_j = load(v, {h, j, 0}, {BN, D});                        // (BN, D)
    acc = dot(cast(p, v.type()), v_j, acc * unsqueeze(alpha, -1)); // (BM, D)
  }
  store(o, {h, i, 0}, cast(acc / unsqueeze(l_i, -1), o.type())); // (BM, D)
  store(lse, {h, i}, (m_i + log2(l_i)) * M_LN2);                 // (BM)
}
const Kernel attentionKernel =
    kernel("attention", attention, {"q (H, T, D)", "k (H, T, D)", "v (H, T, D)", "o (H, T, D)", "lse (H, T) f32"},
           {field("bm", &AttentionConfig::bm, "queries of a program"),
            field("bn", &AttentionConfig::bn, "keys of an iteration")});
