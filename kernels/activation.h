// Activation functions and their derivatives, as formulas for the epilogues of GEMMs.
//
//     gelu      x/2 · (1 + tanh u), u = √(2/π) · (x + 0.044715 x³)      kernels/gelu.h
//     gelu_erf  x/2 · (1 + erf(x / √2))                                 the exact GELU
//     relu      max(x, 0)
//     relu2     max(x, 0)²                                              So et al., "Primer", 2021
//     silu      x / (1 + exp(−x))

#pragma once

#include "dialect/dsl/Tile.h"

namespace kiln {

enum class Activation { none, gelu, gelu_erf, relu, relu2, silu };
/// Names of the activations, in the order of the enumeration.
inline const std::vector<std::string> activationNames = {"none", "gelu", "gelu_erf", "relu", "relu2", "silu"};

/// The activation of x, elementwise; x is an f32 tile of any shape.
Tile activate(Activation activation, Tile x, Accuracy accuracy = Accuracy::full);
/// The derivative. `from` is x, or activation(x) if isKnownByResult(). The derivative of relu at 0 is 0.
Tile activationDerivative(Activation activation, Tile from, Accuracy accuracy = Accuracy::full);
/// Whether the derivative can be computed from the result, so that the backward pass needs no pre-activation. relu2 is
/// excluded because a narrow type rounds its square.
constexpr bool isKnownByResult(Activation activation) { return activation == Activation::relu; }
/// Whether the derivative needs the pre-activation, which must then be saved or recomputed.
constexpr bool needsArgument(Activation activation) {
  return activation != Activation::none && !isKnownByResult(activation);
}

} // namespace kiln
