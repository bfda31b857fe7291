// Flash attention: softmax(q · kᵀ · scale) · v without the (T, T) matrix in memory. Dao, "FlashAttention-2", 2023:
// algorithm 1 forward. The backward pass is algorithm 2 with exchanged loops, so that it needs no atomics.
//
// q, o and their gradients are (B, H, Tq, D); k, v and theirs are (B, Hk, Tk, D). Strides are arbitrary except that the
// last is 1: contiguous heads, or views into a packed (B, T, 3, H, D). Hk divides H (GQA): H / Hk consecutive query
// heads share one key head. Lengths and D are any numbers ≥ 1. `lse` (B, H, Tq) f32 is the base-2 logarithm of the
// softmax's denominator, log2 Σ_j exp(s_ij). The backward pass recomputes the probabilities from it.
//
// A query without any visible key has o = 0, lse = ∞ and zero gradients. (Implementations that mask with a large
// negative score return the mean of v for such rows. They are padding, and no loss should use them.)

#pragma once

#include "kernels/dropout_rng.h"

#include <array>
#include <cstdint>
#include <vector>

namespace kiln {

/// How attention is computed: flash, without the weight matrix in memory, or plain, with it (plain_attention.h).
enum class AttentionForm { flash, plain };
inline constexpr std::array<const char *, 2> attentionNames = {"flash", "plain"};

struct AttentionConfig {
  int bm = 64, bn = 32;                  // block of queries, block of keys
  Precision precision = Precision::ieee; // of fp32 operands of `dot`
  int warps = 4;                         // warps of a CTA, on a GPU
  int stages = 2;                        // pipeline stages of key and value blocks, on a GPU
  int minCtasPerSm = 1;                  // minimum resident CTAs per SM
  int rowSumLanes = 1; // partial row sums of the softmax in the forward pass, added once at the end; divides bn
  bool decode = false; // decode path, bm = 1: the query is multiplied elementwise, without `dot`
  int kvSplits = 1;  // split-KV (flash-decoding), forward only: programs that share the keys of a query; a last launch
                     // combines them
  bool whole = true; // backward: one program for a whole head. Selects launches; no kernel field
  bool longestFirst = false; // blocks of queries are launched from the last to the first: the last ones see most keys
  // Set by the plan:
  bool causal = true;                     // query i sees keys up to i + Tk − Tq
  bool unequalLengths = false;            // Tk may differ from Tq
  bool hasBounds = false;                 // `ranges` are given (varlen, sliding window)
  bool masked = false;                    // a byte mask is given
  int group = 1;                          // query heads per key head (GQA)
  DropoutMode dropout = DropoutMode::off; // of the attention weights

  /// Whether Tk = Tq without GQA, dropout, or a mask other than a causal one. All these options need more registers.
  bool isPlain() const { return !unequalLengths && !hasBounds && !masked && group == 1 && dropout == DropoutMode::off; }
  /// Whether ranges, a mask, GQA or dropout need registers in every block.
  bool chooses() const { return hasBounds || masked || group > 1 || dropout == DropoutMode::random; }
};

/// The masks of attention, and dropout of its weights. A query sees the keys that all given masks allow.
struct AttentionMask {
  bool causal = true; // query i sees keys j ≤ i + Tk − Tq, so the last query sees all
  /// (B, Tq, 2) i32: query i sees keys in [start, end). Both are non-decreasing in i; start = end if it sees none.
  /// Blocks of scores outside are skipped, so a packed sequence costs the sum of its documents' squared lengths. Ranges
  /// express causal masks, padding, packed documents (varlen), sliding windows and prefixes. The kernels check them.
  std::optional<TensorRef> ranges = {};
  /// (B, Tk, 2) i32: the queries in [start, end) that see key j. The backward pass needs them with `ranges`;
  /// queryRanges() computes them.
  std::optional<TensorRef> queryRanges = {};
  /// (B or 1, H or 1, Tq, Tk) i8: query i sees key j if the byte is not 0. Every block of scores is computed.
  std::optional<TensorRef> mask = {};
  /// Dropout of the weights softmax(q · kᵀ · scale). kernels/dropout_rng.h numbers weight j of query i of head h as
  /// column j of row (s · H + h) · maxLength + i. No mask is stored; the backward pass recomputes it.
  std::optional<Dropout> dropout = {};
};

/// Converts ranges of keys for each of Tq queries, (B, Tq, 2), into ranges of queries for each of Tk keys, (B, Tk, 2).
/// Throws Error for ranges that decrease, whose start is above their end, or that exceed the keys.
std::vector<int32_t> queryRanges(const std::vector<int32_t> &ranges, int64_t Tq, int64_t Tk);

extern const Kernel attentionKernel, attentionSplitKernel, attentionCombineKernel, attentionBackwardKernel,
    attentionBackwardKeysKernel, attentionBackwardQueriesKernel;

/// Default configs of the forward and the backward pass for Tq queries, Tk keys (default: Tq) and heads of size D.
AttentionConfig pickAttention(const Target &target, int64_t Tq, int64_t D, Type type = Type::f32,
                              const std::optional<int64_t> &Tk = {});
AttentionConfig pickAttentionBackward(const Target &target, int64_t Tq, int64_t D, Type type = Type::f32,
                                      const std::optional<int64_t> &Tk = {});

/// Number of split-KV parts; `heads` is the number of heads of all sequences together. It is above 1 if there are few
/// queries compared with keys, as in decoding, and there would be few programs.
int pickKvSplits(const Target &target, const AttentionConfig &config, int64_t heads, int64_t Tq, int64_t Tk);

/// o and lse from q, k, v. `scale` is positive and multiplies the scores, usually 1 / √D. With config.kvSplits above 1
/// there are two launches. In the first, each part computes o and lse over an equal number of a query's keys. The
/// second combines the parts in order. The workspace is then parts · B · H · Tq · (D + 1) f32. Shapes and config
/// determine the number of parts; the ranges determine their lengths.
Plan planAttention(const Target &target, const TensorRef &q, const TensorRef &k, const TensorRef &v, const TensorRef &o,
                   const TensorRef &lse, float scale, const AttentionMask &mask = {},
                   const std::optional<AttentionConfig> &config = {});

/// Operands and results of the forward pass, and the gradient of o.
struct AttentionSaved {
  TensorRef q, k, v, o, lse, dout;
};

/// Writes dq, dk and dv. dk and dv sum over the query heads of a group in order. With config.whole there is one launch
/// with a program for each (batch, key head), otherwise two launches by blocks of rows. dq, dk and dv overlap none of
/// the operands. Workspace: B · H · Tq f32; with config.whole and dq not f32, B · H · Tq · D f32 more.
Plan planAttentionBackward(const Target &target, const AttentionSaved &saved, const TensorRef &dq, const TensorRef &dk,
                           const TensorRef &dv, float scale, const AttentionMask &mask = {},
                           const std::optional<AttentionConfig> &config = {});

} // namespace kiln
