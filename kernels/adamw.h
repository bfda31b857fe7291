// The optimiser: AdamW over flat buffers in one launch, and the global gradient norm that clipping needs.
// Loshchilov & Hutter, "Decoupled Weight Decay Regularization", 2019, algorithm 2:
//
//     m = β₁ m + (1 − β₁) g          p = p − lr · (m̂ / (√v̂ + ε) + λ p)
//     v = β₂ v + (1 − β₂) g²         m̂ = m / (1 − β₁ᵗ),  v̂ = v / (1 − β₂ᵗ)

#pragma once

#include "dialect/dsl/Plan.h"

namespace kiln {

struct AdamWConfig {
  int block = 8192;      // elements a program
  bool zeroGrad = false; // leaves zeros in g; set by the plan
};

struct SquaresConfig {
  int block = 1024;      // running sums side by side
  int64_t chunk = 65536; // elements a program
};

extern const Kernel adamwKernel, squaresKernel, normKernel;

/// One step's scalars.
struct AdamWStep {
  double lr = 3e-4, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double decay = 0.1;    // λ, for the first `decayed` elements; 0 for the rest
  int64_t decayed = 0;   // models lay the tensors that decay first
  int64_t step = 1;      // t, counted from 1
  double gradScale = 1;  // multiplies g first: clipping, and 1 / loss scale
  bool zeroGrad = false; // leaves zeros in g for the next step's sums
};

/// p, m, v (and g) updated in place. p, g, m, v (n), dense; g may be bf16 or f16, the others are f32.
Plan planAdamW(const Target &target, const TensorRef &p, const TensorRef &g, const TensorRef &m, const TensorRef &v,
               const AdamWStep &step, const AdamWConfig &config = {});

/// norm[0] = √Σ g². g (n), norm (1) f32. Workspace: ⌈n / config.chunk⌉ f32.
Plan planGradNorm(const Target &target, const TensorRef &g, const TensorRef &norm, const SquaresConfig &config = {});

} // namespace kiln
