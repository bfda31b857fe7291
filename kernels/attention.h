// Flash attention: softmax(q · kᵀ · scale) · v without ever holding the (T, T) matrix. Dao,
// "FlashAttention-2", 2023: algorithm 1 forward, algorithm 2 backward with its loops exchanged so that no
// atomics are needed.
//
// q, o and their gradients are (B, H, Tq, D), k, v and theirs (B, Hk, Tk, D), with any strides whose last is 1:
// contiguous heads, or views into a packed (B, T, 3, H, D). Hk divides H: so many heads of queries in a row share one
// of keys and values. Lengths and D are any numbers ≥ 1. `lse` (B, H, Tq) f32 is the base-2 logarithm of the softmax's
// denominator, log2 Σ_j exp(s_ij), with which the backward pass makes the probabilities again.
//
// A query that sees no key has o = 0, lse = ∞ and gradients of 0. (An implementation that fills scores with a large
// negative number gives the mean of v there instead; such rows are padding, and no loss should see them.)

#pragma once

#include "kernels/chances.h"

#include <array>
#include <cstdint>
#include <vector>

namespace kiln {

/// How attention is computed: without its matrix of weights in memory, as here, or with it (plain_attention.h).
enum class AttentionForm { flash, plain };
inline constexpr std::array<const char *, 2> attentionNames = {"flash", "plain"};

struct AttentionConfig {
  int bm = 64, bn = 32;                  // rows of q, rows of k and v a tile
  Precision precision = Precision::ieee; // of products of f32
  int warps = 4;                         // of a program, on a GPU
  int stages = 2;                        // blocks of keys and values in flight or in use, on a GPU
  int programs = 1;                      // that an SM is to hold at least
  int sums =
      1; // of a row's probabilities, which the forward pass adds up side by side and together at the end; divides bn
  bool rows = false; // a query, bm = 1, is multiplied by keys and values elementwise in place of products of tiles
  int parts = 1;     // programs that share the keys of a query, and leave what a last launch joins: forward pass alone
  bool whole = true; // the backward pass has one program for a whole head; it chooses launches and is no field
  bool longest = false; // blocks of queries are taken from the last on, each of all heads: which see the most keys
  // Set by the plan:
  bool causal = true;   // row i sees columns up to i + Tk − Tq
  bool shifted = false; // Tk is not Tq, or need not be it
  bool ranged = false;  // with ranges
  bool masked = false;  // with a mask
  int group = 1;        // heads of queries that share one of keys and values
  Drop drop = Drop::no; // of the weights

  /// Whether rows see all columns, or all up to their own, and all weights are kept: what else there is takes
  /// registers.
  bool isPlain() const { return !shifted && !ranged && !masked && group == 1 && drop == Drop::no; }
  /// Whether what says which scores count, or which weights are kept, or whose keys they are, takes registers in every
  /// block.
  bool chooses() const { return ranged || masked || group > 1 || drop == Drop::chance; }
};

/// Which keys a query sees: those that all of this lets it see. And which weights of those are dropped.
struct AttentionMask {
  bool causal = true; // query i sees keys j ≤ i + Tk − Tq: the last one sees all
  /// (B, Tq, 2) i32: query i sees keys from [0] and below [1]. Neither falls from one query to the next, and one that
  /// sees none has both alike. Blocks of scores outside are not computed, so that sequences packed into one cost the
  /// sum of their squares; causal, padding, packing, windows and prefixes are all ranges. A kernel checks them.
  std::optional<TensorRef> ranges = {};
  /// (B, Tk, 2) i32: the same from the keys' side, which the backward pass takes beside `ranges`; columnRanges() makes
  /// it.
  std::optional<TensorRef> columnRanges = {};
  /// (B or 1, H or 1, Tq, Tk) i8: query i sees the keys j that are not 0. Every block of scores is computed.
  std::optional<TensorRef> mask = {};
  /// Dropout of the weights softmax(q · kᵀ · scale): weight j of query i of head h is column j of row
  /// (s · H + h) · most + i, as kernels/chances.h numbers them. Nothing is stored: the backward pass finds the same
  /// ones.
  std::optional<Dropout> dropout = {};
};

/// Of the ranges of keys that each of Tq queries sees, (B, Tq, 2), the ranges of queries that see each of Tk keys,
/// (B, Tk, 2). Throws Error for ranges that fall, whose begin is above their end, or that leave the keys.
std::vector<int32_t> columnRanges(const std::vector<int32_t> &ranges, int64_t Tq, int64_t Tk);

extern const Kernel attentionKernel, attentionPartKernel, attentionJoinKernel, attentionBackwardKernel,
    attentionBackwardKeysKernel, attentionBackwardQueriesKernel;

/// Tile sizes and precision of the two passes for Tq queries, and Tk keys if these are not as many, and heads of size
/// D.
AttentionConfig pickAttention(const Target &target, int64_t Tq, int64_t D, Type type = Type::f32,
                              const std::optional<int64_t> &Tk = {});
AttentionConfig pickAttentionBackward(const Target &target, int64_t Tq, int64_t D, Type type = Type::f32,
                                      const std::optional<int64_t> &Tk = {});

/// Parts of the keys, for so many heads of all sequences together: several where queries are few beside the keys, as in
/// a text that grows, and programs would be few.
int pickAttentionParts(const Target &target, const AttentionConfig &config, int64_t heads, int64_t Tq, int64_t Tk);

/// o and lse from q, k, v. `scale`, which is positive, multiplies the scores; 1 / √D is usual. With config.parts above
/// 1 two launches: each part gives o and lse of the keys that it has, of which a query sees an equal share in each, and
/// the second adds these in order. Workspace then: parts · B · H · Tq · (D + 1) f32. How many parts there are is for
/// the shapes and the config to say; how long they are, for the ranges.
Plan planAttention(const Target &target, const TensorRef &q, const TensorRef &k, const TensorRef &v, const TensorRef &o,
                   const TensorRef &lse, float scale, const AttentionMask &mask = {},
                   const std::optional<AttentionConfig> &config = {});

/// The forward pass's operands and results, and the gradient of its result.
struct AttentionSaved {
  TensorRef q, k, v, o, lse, dout;
};

/// dq, dk, dv, all written; dk and dv add what the heads of a group give in their order. With config.whole one launch,
/// one program a (batch, head of keys); else two launches, by blocks of rows. dq, dk and dv overlap none of the
/// operands. Workspace: B · H · Tq f32, and, with config.whole, B · H · Tq · D f32 more when dq is not f32.
Plan planAttentionBackward(const Target &target, const AttentionSaved &saved, const TensorRef &dq, const TensorRef &dk,
                           const TensorRef &dv, float scale, const AttentionMask &mask = {},
                           const std::optional<AttentionConfig> &config = {});

} // namespace kiln
