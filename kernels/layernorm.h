// LayerNorm over the last dimension: forward, forward fused with the residual addition before it, and the
// fused backward pass that reads every row once. Ba, Kiros & Hinton, "Layer Normalization", 2016.
//
// Backward, with x̂ = (x − mean) · rstd and g = dout · gamma, means taken over the C columns:
//
//     dx     = (g − mean(g) − x̂ · mean(g · x̂)) · rstd
//     dgamma = Σ_n dout · x̂,   dbeta = Σ_n dout

#pragma once

#include "dialect/dsl/Plan.h"

#include <optional>

namespace kiln {

struct LayerNormConfig {
  int rows = 4; // rows a program
};

struct LayerNormBackwardConfig {
  int block = 4;           // rows a tile
  int rows = 32;           // rows a program; each program leaves one partial row of dgamma and of dbeta
  bool accumulate = false; // dx += …, set by the plan
};

extern const Kernel layernormKernel, residualLayernormKernel, layernormBackwardKernel;

/// The rows of a program on a machine, and those of its tiles.
LayerNormConfig pickLayerNorm(const Target &target);
LayerNormBackwardConfig pickLayerNormBackward(const Target &target);

/// out = (x − mean) · rstd · gamma + beta, row by row, with rstd = 1 / √(variance + epsilon).
/// x, out (N, C) f32, bf16 or f16; gamma, beta (C); mean, rstd (N) f32, kept for the backward pass.
Plan planLayerNorm(const Target &target, const TensorRef &x, const TensorRef &gamma, const TensorRef &beta,
                   const TensorRef &out, const TensorRef &mean, const TensorRef &rstd, float epsilon = 1e-5f,
                   const std::optional<LayerNormConfig> &config = {});

/// sum = x + delta; out = LayerNorm(sum), of the sum as stored. x, delta, sum, out (N, C); `sum` may be `x`.
Plan planResidualLayerNorm(const Target &target, const TensorRef &x, const TensorRef &delta, const TensorRef &gamma,
                           const TensorRef &beta, const TensorRef &sum, const TensorRef &out, const TensorRef &mean,
                           const TensorRef &rstd, float epsilon = 1e-5f,
                           const std::optional<LayerNormConfig> &config = {});

/// What the backward pass does with what its outputs hold.
struct LayerNormAccumulate {
  bool dx = false;         // dx += …: the gradient joins the one that flows along the residual
  bool parameters = false; // dgamma, dbeta += …: gradients summed over micro-batches
};

/// dx, dgamma, dbeta from dout in one pass over the rows, and an ordered sum of partial rows.
/// dout, x, dx (N, C); gamma, dgamma, dbeta (C); mean, rstd (N) as the forward pass left them. `dx` may be
/// `dout`. Workspace: 2 · ⌈N / config.rows⌉ · C f32.
Plan planLayerNormBackward(const Target &target, const TensorRef &dout, const TensorRef &x, const TensorRef &gamma,
                           const TensorRef &mean, const TensorRef &rstd, const TensorRef &dx, const TensorRef &dgamma,
                           const TensorRef &dbeta, LayerNormAccumulate accumulate,
                           const std::optional<LayerNormBackwardConfig> &config = {});

} // namespace kiln
