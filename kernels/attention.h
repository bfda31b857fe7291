// Flash attention: softmax(q · kᵀ · scale) · v without ever holding the (T, T) matrix. Dao,
// "FlashAttention-2", 2023: algorithm 1 forward, algorithm 2 backward with its loops exchanged so that no
// atomics are needed.
//
// All of q, k, v, o and their gradients are (B, H, T, D) with any strides whose last is 1: contiguous heads,
// or views into a packed (B, T, 3, H, D). T and D are any number ≥ 1. `lse` (B, H, T) f32 is the base-2
// logarithm of the softmax's denominator, log2 Σ_j exp(s_ij), with which the backward pass makes the
// probabilities again.

#pragma once

#include "dialect/dsl/Plan.h"

#include <optional>

namespace kiln {

struct AttentionConfig {
  int bm = 64, bn = 64;                  // rows of q, rows of k and v a tile
  bool causal = true;                    // row i sees columns 0 … i; set by the plan
  Precision precision = Precision::ieee; // of products of f32
  int warps = 4;                         // of a program, on a GPU
  int stages = 2;                        // blocks of keys and values in flight or in use, on a GPU
  bool whole = true; // the backward pass has one program for a whole head; it chooses launches and is no field
};

extern const Kernel attentionKernel, attentionBackwardKernel, attentionDeltaKernel, attentionBackwardKeysKernel,
    attentionBackwardQueriesKernel;

/// Tile sizes and precision of the two passes for sequences of length T and heads of size D.
AttentionConfig pickAttention(const Target &target, int64_t T, int64_t D, Type type = Type::f32);
AttentionConfig pickAttentionBackward(const Target &target, int64_t T, int64_t D, Type type = Type::f32);

/// o and lse from q, k, v. `scale`, which is positive, multiplies the scores; 1 / √D is usual.
Plan planAttention(const Target &target, const TensorRef &q, const TensorRef &k, const TensorRef &v, const TensorRef &o,
                   const TensorRef &lse, float scale, bool causal = true,
                   const std::optional<AttentionConfig> &config = {});

/// The forward pass's operands and results, and the gradient of its result.
struct AttentionSaved {
  TensorRef q, k, v, o, lse, dout;
};

/// dq, dk, dv, all written. With config.whole one launch, one program a (batch, head); else three launches, by blocks
/// of rows. dq, dk and dv overlap none of the operands. Workspace: B · H · T f32, and, with config.whole, B · H · T · D
/// f32 more when dq is not f32.
Plan planAttentionBackward(const Target &target, const AttentionSaved &saved, const TensorRef &dq, const TensorRef &dk,
                           const TensorRef &dv, float scale, bool causal = true,
                           const std::optional<AttentionConfig> &config = {});

} // namespace kiln
