// An activation and dropout of a matrix, elementwise: what the epilogue of a product makes of its pre-activation, made
// again of that.
//
//     out = drop(activation(x))

#pragma once

#include "kernels/activation.h"
#include "kernels/chances.h"

namespace kiln {

struct ActivateConfig {
  int rows = 8, columns = 512;              // of a tile; columns is at most 128 where numbers are dropped by chance
  Activation activation = Activation::none; // set by the plan, as the next
  Drop drop = Drop::no;
};

extern const Kernel activateKernel;

/// The tile for rows of C elements.
ActivateConfig pickActivate(const Target &target, int64_t C, Drop drop);

/// out = drop(activation(x)). x, out (N, C) f32, bf16 or f16; `out` may be `x`. Where planLinear left `x` as the
/// pre-activation, `out` is to the bit what it made of it.
Plan planActivate(const Target &target, Activation activation, const TensorRef &x, const TensorRef &out,
                  const std::optional<Dropout> &dropout = {}, const std::optional<ActivateConfig> &config = {});

} // namespace kiln
