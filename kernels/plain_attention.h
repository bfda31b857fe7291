// Plain attention: the weights softmax(q · kᵀ · scale) are in memory, (Tq, Tk) for every head. It takes the shapes,
// masks and dropout of flash attention (attention.h), and its results agree up to rounding. Tests compare the two.

#pragma once

#include "kernels/attention.h"

namespace kiln {

struct HeadProductConfig {
  int bm = 64, bn = 64, bk = 32;         // of GEMM tiles
  Precision precision = Precision::ieee; // of f32 operands
  int warps = 4, stages = 2;             // warps of a CTA and pipeline stages, on a GPU
  // Set by the plan:
  bool ta = false, tb = false; // A, B are stored transposed
  int group = 1;               // heads of A per head of B (GQA)
  bool sumGroup = false;       // GQA gradients: `group` products are summed into one head of C
};

extern const Kernel headProductKernel, maskedSoftmaxKernel, maskedSoftmaxBackwardKernel;

/// o from q, k, v; `weights` (B, H, Tq, Tk) f32 receives the softmax before dropout. A query that sees no key has
/// weights 0. Workspace: with dropout, B · H · Tq · Tk f32.
Plan planPlainAttention(const Target &target, const TensorRef &q, const TensorRef &k, const TensorRef &v,
                        const TensorRef &o, const TensorRef &weights, float scale, const AttentionMask &mask = {});

/// Operands and weights of the forward pass, and the gradient of its result.
struct PlainAttentionSaved {
  TensorRef q, k, v, weights, dout;
};

/// Writes dq, dk and dv; with dropout it overwrites `saved.weights`. Workspace: B · H · Tq · Tk f32.
Plan planPlainAttentionBackward(const Target &target, const PlainAttentionSaved &saved, const TensorRef &dq,
                                const TensorRef &dk, const TensorRef &dv, float scale, const AttentionMask &mask = {});

} // namespace kiln
