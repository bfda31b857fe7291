// LayerNorm over the last dimension: forward, forward fused with the residual addition before it, and the
// fused backward pass that reads every row once. Ba, Kiros & Hinton, "Layer Normalization", 2016.
//
// Backward, with x̂ = (x − mean) · rstd and g = dout · gamma, means taken over the C columns:
//
//     dx     = (g − mean(g) − x̂ · mean(g · x̂) · q) · rstd
//     dgamma = Σ_n dout · x̂,   dbeta = Σ_n dout
//
// q is 1; C / (C − ddof) where the variance is divided by C − ddof; and 1 / (1 − ε · rstd) times that where ε is added
// to the root.

#pragma once

#include "dialect/dsl/Plan.h"

#include <optional>

namespace kiln {

struct LayerNormConfig {
  int rows = 4;     // rows a program
  int programs = 0; // that an SM is to hold at least; 0: the compiler's choice
  // Set by the plan:
  int ddof = 0;         // what the variance's divisor is less than C
  bool outside = false; // ε is added to the root
  bool bare = false;    // ε is 0: a row without variance has an rstd of 0
  bool affine = true;   // times gamma, plus beta
};

struct LayerNormBackwardConfig {
  int block = 4;    // rows a tile
  int rows = 32;    // rows a program; each program leaves one partial row of dgamma and of dbeta
  int programs = 0; // that an SM is to hold at least; 0: the compiler's choice
  // Set by the plan:
  bool accumulate = false; // dx += …
  bool apart = false;      // dx = residual + …, which lies elsewhere
  int ddof = 0;            // the forward pass's
  bool outside = false;    // the forward pass's, unless ε is 0
  bool affine = true;      // the forward pass's
};

/// What rstd is, of the C numbers of a row:
///
///     rstd = 1 / √(Σ (x − mean)² / (C − ddof) + ε),   or 1 / (√(Σ (x − mean)² / (C − ddof)) + ε) with `outside`
///
/// A row whose numbers are all equal has an rstd of 0 where ε is 0, and so is normalised to zeros.
struct LayerNormOptions {
  float epsilon; // ε, at least 0
  int ddof;      // 0 or 1: Bessel's correction
  bool outside;
  bool affine; // else gamma counts as ones and beta as zeros: nothing looks at them, nor at their gradients
  LayerNormOptions(float epsilon = 1e-5f, int ddof = 0, bool outside = false, bool affine = true)
      : epsilon(epsilon), ddof(ddof), outside(outside), affine(affine) {}
};

extern const Kernel layernormKernel, residualLayernormKernel, layernormBackwardKernel;

/// The rows of a program on a machine, and those of its tiles.
LayerNormConfig pickLayerNorm(const Target &target, int64_t C, Type type);                            // of rows C wide
LayerNormBackwardConfig pickLayerNormBackward(const Target &target, int64_t N, int64_t C, Type type); // of N rows

/// out = (x − mean) · rstd · gamma + beta, row by row, with rstd as LayerNormOptions says.
/// x, out (N, C) f32, bf16 or f16; gamma, beta (C); mean, rstd (N) f32, kept for the backward pass.
Plan planLayerNorm(const Target &target, const TensorRef &x, const TensorRef &gamma, const TensorRef &beta,
                   const TensorRef &out, const TensorRef &mean, const TensorRef &rstd,
                   const LayerNormOptions &options = {}, const std::optional<LayerNormConfig> &config = {});

/// sum = x + delta; out = LayerNorm(sum), of the sum as stored. x, delta, sum, out (N, C); `sum` may be `x`.
Plan planResidualLayerNorm(const Target &target, const TensorRef &x, const TensorRef &delta, const TensorRef &gamma,
                           const TensorRef &beta, const TensorRef &sum, const TensorRef &out, const TensorRef &mean,
                           const TensorRef &rstd, const LayerNormOptions &options = {},
                           const std::optional<LayerNormConfig> &config = {});

/// What the backward pass does with what its outputs hold.
struct LayerNormAccumulate {
  bool dx = false;                        // dx += …: the gradient joins the one that flows along the residual
  bool parameters = false;                // dgamma, dbeta += …: gradients summed over micro-batches
  std::optional<TensorRef> residual = {}; // (N, C), what dx is added to, if it is not what dx holds
  /// (2, P, C) f32, P = layerNormParts(): the partial rows of dgamma and of dbeta stay here, and nobody adds them up.
  std::optional<TensorRef> parts = {};
};

/// dx, dgamma, dbeta from dout in one pass over the rows, and ordered sums of partial rows.
/// dout, x, dx (N, C); gamma, dgamma, dbeta (C); mean, rstd (N) as the forward pass left them. `dx` may be
/// `dout`. Workspace: 2 · ⌈N / config.rows⌉ · C f32.
Plan planLayerNormBackward(const Target &target, const TensorRef &dout, const TensorRef &x, const TensorRef &gamma,
                           const TensorRef &mean, const TensorRef &rstd, const TensorRef &dx, const TensorRef &dgamma,
                           const TensorRef &dbeta, LayerNormAccumulate accumulate, const LayerNormOptions &options = {},
                           const std::optional<LayerNormBackwardConfig> &config = {});

/// The partial rows that the backward pass leaves of N rows of C elements where nobody gives it a config.
int64_t layerNormParts(const Target &target, int64_t N, int64_t C, Type type);
/// What adds them up. parts (2, P, C), dgamma, dbeta (C).
std::vector<Launch> launchLayerNormSums(const Target &target, const TensorRef &parts, const TensorRef &dgamma,
                                        const TensorRef &dbeta, bool accumulate);

} // namespace kiln
