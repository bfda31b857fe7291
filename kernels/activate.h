// An activation and dropout over a matrix, elementwise. It recomputes the output of a GEMM's epilogue from the saved
// pre-activation (activation checkpointing).
//
//     out = drop(activation(x))

#pragma once

#include "kernels/activation.h"
#include "kernels/dropout_rng.h"

namespace kiln {

struct ActivateConfig {
  int rows = 8, columns = 512;              // of a tile; at most 128 columns with random dropout
  Activation activation = Activation::none; // both set by the plan
  DropoutMode dropout = DropoutMode::off;
};

extern const Kernel activateKernel;

/// Default config for rows of C elements.
ActivateConfig pickActivate(const Target &target, int64_t C, DropoutMode drop);

/// out = drop(activation(x)). x, out (N, C) f32, bf16 or f16; `out` may be `x`. If planLinear stored `x` as its
/// pre-activation, `out` equals its output to the bit.
Plan planActivate(const Target &target, Activation activation, const TensorRef &x, const TensorRef &out,
                  const std::optional<Dropout> &dropout = {}, const std::optional<ActivateConfig> &config = {});

} // namespace kiln
