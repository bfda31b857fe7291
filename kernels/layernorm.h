// LayerNorm over the last dimension: forward, forward fused with the residual addition before it, and a fused backward
// pass that reads every row once. Ba, Kiros & Hinton, "Layer Normalization", 2016.
//
// Backward, with x̂ = (x − mean) · rstd and g = dout · gamma, means taken over the C columns:
//
//     dx     = (g − mean(g) − x̂ · mean(g · x̂) · q) · rstd
//     dgamma = Σ_n dout · x̂,   dbeta = Σ_n dout
//
// q is 1, or C / (C − ddof) if the variance is divided by C − ddof. If ε is added to the root, q is 1 / (1 − ε · rstd)
// times that.

#pragma once

#include "dialect/dsl/Plan.h"

#include <optional>

namespace kiln {

struct LayerNormConfig {
  int rows = 4;         // rows a program
  int minCtasPerSm = 0; // minimum resident CTAs per SM; 0: the compiler decides
  // Set by the plan:
  int ddof = 0;                // delta degrees of freedom: the variance divides by C − ddof
  bool epsOutsideSqrt = false; // ε is added to the root
  bool epsIsZero = false;      // ε is 0: a row without variance has rstd 0
  bool affine = true;          // with gamma and beta
};

struct LayerNormBackwardConfig {
  int block = 4;        // rows a tile
  int rows = 32;        // rows a program; each program leaves one partial row of dgamma and of dbeta
  int minCtasPerSm = 0; // minimum resident CTAs per SM; 0: the compiler decides
  // Set by the plan:
  bool accumulate = false;       // dx += …
  bool separateResidual = false; // dx = residual + …, where residual is other memory than dx
  int ddof = 0;                  // as in the forward pass
  bool epsOutsideSqrt = false;   // as in the forward pass; false if ε is 0
  bool affine = true;            // as in the forward pass
};

/// Options of LayerNorm. For the C elements of a row
///
///     rstd = 1 / √(Σ (x − mean)² / (C − ddof) + ε),   or 1 / (√(Σ (x − mean)² / (C − ddof)) + ε) with `epsOutsideSqrt`
///
/// If ε is 0, a row of equal elements has rstd 0 and becomes zeros.
struct LayerNormOptions {
  float epsilon; // ε, at least 0
  int ddof;      // 0 or 1: Bessel's correction
  bool epsOutsideSqrt;
  bool affine; // without: gamma is ones, beta is zeros; neither they nor their gradients are accessed
  LayerNormOptions(float epsilon = 1e-5f, int ddof = 0, bool epsOutsideSqrt = false, bool affine = true)
      : epsilon(epsilon), ddof(ddof), epsOutsideSqrt(epsOutsideSqrt), affine(affine) {}
};

extern const Kernel layernormKernel, residualLayernormKernel, layernormBackwardKernel;

/// Default configs for N rows of C elements.
LayerNormConfig pickLayerNorm(const Target &target, int64_t C, Type type);
LayerNormBackwardConfig pickLayerNormBackward(const Target &target, int64_t N, int64_t C, Type type);

/// out = (x − mean) · rstd · gamma + beta for each row, with rstd as in LayerNormOptions. x, out (N, C) f32, bf16 or
/// f16; gamma, beta (C); mean, rstd (N) f32, saved for the backward pass.
Plan planLayerNorm(const Target &target, const TensorRef &x, const TensorRef &gamma, const TensorRef &beta,
                   const TensorRef &out, const TensorRef &mean, const TensorRef &rstd,
                   const LayerNormOptions &options = {}, const std::optional<LayerNormConfig> &config = {});

/// sum = x + delta; out = LayerNorm(sum), computed from the stored sum. x, delta, sum, out (N, C); `sum` may be `x`.
Plan planResidualLayerNorm(const Target &target, const TensorRef &x, const TensorRef &delta, const TensorRef &gamma,
                           const TensorRef &beta, const TensorRef &sum, const TensorRef &out, const TensorRef &mean,
                           const TensorRef &rstd, const LayerNormOptions &options = {},
                           const std::optional<LayerNormConfig> &config = {});

/// Which outputs of the backward pass accumulate.
struct LayerNormAccumulate {
  bool dx = false;                        // dx += …: adds to the gradient along the residual stream
  bool parameters = false;                // dgamma, dbeta += …: gradient accumulation over micro-batches
  std::optional<TensorRef> residual = {}; // (N, C), added to dx, if it is not in dx already
  /// (2, P, C) f32, P = layerNormParts(): receives the partial rows of dgamma and dbeta, which are then not added up.
  std::optional<TensorRef> parts = {};
};

/// dx, dgamma, dbeta from dout in one pass over the rows, and ordered sums of partial rows. dout, x, dx (N, C); gamma,
/// dgamma, dbeta (C); mean, rstd (N) as the forward pass saved them. `dx` may be `dout`. Workspace: 2 · ⌈N /
/// config.rows⌉ · C f32.
Plan planLayerNormBackward(const Target &target, const TensorRef &dout, const TensorRef &x, const TensorRef &gamma,
                           const TensorRef &mean, const TensorRef &rstd, const TensorRef &dx, const TensorRef &dgamma,
                           const TensorRef &dbeta, LayerNormAccumulate accumulate, const LayerNormOptions &options = {},
                           const std::optional<LayerNormBackwardConfig> &config = {});

/// Number of partial rows for N rows of C elements with the default config.
int64_t layerNormParts(const Target &target, int64_t N, int64_t C, Type type);
/// Adds up the partial rows. parts (2, P, C), dgamma, dbeta (C).
std::vector<Launch> launchLayerNormSums(const Target &target, const TensorRef &parts, const TensorRef &dgamma,
                                        const TensorRef &dbeta, bool accumulate);

} // namespace kiln
