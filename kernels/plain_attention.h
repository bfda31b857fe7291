// Attention as it is written down: the matrix of weights softmax(q · kᵀ · scale) is in memory, (Tq, Tk) of every head.
// It is what flash attention (attention.h) is compared with, and what other programs do without it. Shapes, masks and
// dropout are the same, and so are results but for roundings.

#pragma once

#include "kernels/attention.h"

namespace kiln {

struct HeadProductConfig {
  int bm = 64, bn = 64, bk = 32;         // of tiles, as in a matrix product
  Precision precision = Precision::ieee; // of products of f32
  int warps = 4, stages = 2;             // of a program, and steps whose operands are in shared memory, on a GPU
  // Set by the plan:
  bool ta = false, tb = false; // A, B are stored transposed
  int group = 1;               // heads of A that share one of B
  bool sums = false;           // instead of sharing, as many products are added into one of C
};

extern const Kernel headProductKernel, maskedSoftmaxKernel, maskedSoftmaxBackwardKernel;

/// o from q, k, v; `weights` (B, H, Tq, Tk) f32 receives the softmax, before dropout. A query that sees no key has
/// weights of 0. Workspace: with dropout as much as the weights.
Plan planPlainAttention(const Target &target, const TensorRef &q, const TensorRef &k, const TensorRef &v,
                        const TensorRef &o, const TensorRef &weights, float scale, const AttentionMask &mask = {});

/// The forward pass's operands and weights, and the gradient of its result.
struct PlainAttentionSaved {
  TensorRef q, k, v, weights, dout;
};

/// dq, dk, dv, all written; with dropout `saved.weights` is overwritten. Workspace: B · H · Tq · Tk f32.
Plan planPlainAttentionBackward(const Target &target, const PlainAttentionSaved &saved, const TensorRef &dq,
                                const TensorRef &dk, const TensorRef &dv, float scale, const AttentionMask &mask = {});

} // namespace kiln
