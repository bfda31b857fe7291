// The core of flash attention's forward kernels, shared by attention (attention.cc) and its split-KV form
// (attention_decode.cc).

#pragma once

#include "kernels/attention_mask.h"

namespace kiln {

/// The arguments of both forward kernels.
struct AttentionArgs {
  View q, k, v, o; // q (B, H, Tq, D); k, v (B, Hk, Tk, D); o has rows of D elements
  View ranges, mask;
  Tile scale;
  WeightDropoutArgs dropout;
};

/// A block of BM queries of one head, and its options.
struct QueryBlock {
  View q, k, v;
  int64_t D;
  Tile row, h, b; // scalars: first query, query head, sequence
  Tile scale;
  WeightDropout dropout;
  ScoreMask mask;
};

/// O and L of a block of queries.
struct AttentionOut {
  Tile o, lse; // (BM, D), (BM)
};

/// The block of queries from `row` on, of head h of sequence b.
QueryBlock queryBlock(const AttentionArgs &args, const Tile &row, const Tile &h, const Tile &b,
                      const AttentionConfig &cfg);

/// Attention of a block of queries over the keys [keys.from, keys.to).
AttentionOut flashAttention(const QueryBlock &in, const Bounds &keys, const AttentionConfig &cfg);

/// Option decode: Q · Kᵀ of one query, (1, BN), and acc + P · V, (1, D), elementwise.
Tile decodeScores(const Tile &q, const Tile &k);
Tile decodeOutput(const Tile &p, const Tile &v, const Tile &acc);

} // namespace kiln
