// GELU in its tanh form, as in GPT-2, and its derivative: as formulas for the epilogues of other kernels, and as
// kernels.
//
//     gelu(x) = x/2 · (1 + tanh u) = x · σ(2u),   u = √(2/π) · (x + 0.044715 x³)
//
// Hendrycks & Gimpel, "Gaussian Error Linear Units", 2016, §2. The logistic form costs one exponential and one
// division.

#pragma once

#include "dialect/dsl/Plan.h"

#include <optional>

namespace kiln {

/// Accuracy of an f32 formula whose result is stored in `to`. A narrow type keeps 8 or 11 bits. Fast functions change
/// them only for results close to halfway between two of its numbers.
inline Accuracy accuracyFor(View to) { return to.type() == f32 ? Accuracy::full : Accuracy::fast; }

/// gelu(x), elementwise; x is an f32 tile of any shape.
Tile gelu(Tile x, Accuracy accuracy = Accuracy::full);
/// d gelu(x) / dx, elementwise.
Tile geluGradient(Tile x, Accuracy accuracy = Accuracy::full);

struct GeluConfig {
  int block = 4096; // elements a program
};

extern const Kernel geluKernel, geluBackwardKernel;

/// Default config for n elements.
GeluConfig pickGelu(const Target &target, int64_t n);

/// out = gelu(x) over vectors of equal length. `out` may be `x`.
Plan planGelu(const Target &target, const TensorRef &x, const TensorRef &out,
              const std::optional<GeluConfig> &config = {});
/// dx = dout · gelu'(x) over vectors of equal length. `dx` may be `dout`.
Plan planGeluBackward(const Target &target, const TensorRef &x, const TensorRef &dout, const TensorRef &dx,
                      const std::optional<GeluConfig> &config = {});

} // namespace kiln
