// What is applied to each number between two products, and its derivative: formulas that kernels put in their
// epilogues.
//
//     gelu      x/2 · (1 + tanh u), u = √(2/π) · (x + 0.044715 x³)      kernels/gelu.h
//     gelu_erf  x/2 · (1 + erf(x / √2))                                 the same before it was approximated
//     relu      max(x, 0)
//     relu2     max(x, 0)²                                              So et al., "Primer", 2021
//     silu      x / (1 + exp(−x))

#pragma once

#include "dialect/dsl/Tile.h"

namespace kiln {

enum class Activation { none, gelu, gelu_erf, relu, relu2, silu };
/// Their names, in this order.
inline const std::vector<std::string> activationNames = {"none", "gelu", "gelu_erf", "relu", "relu2", "silu"};
/// The activation called `text`; throws Error for another text.
Activation activationNamed(const std::string &text);

/// The activation of x, elementwise; x is an f32 tile of any shape.
Tile activate(Activation activation, Tile x, Accuracy accuracy = Accuracy::full);
/// Its derivative by x: from x, or, when isKnownByResult(), from the activation of x. Where x is 0, relu's is 0.
Tile activationSlope(Activation activation, Tile from, Accuracy accuracy = Accuracy::full);
/// Whether the derivative follows from the result, so that the backward pass needs nothing but that. relu2's does but
/// for what narrow types lose of a square.
constexpr bool isKnownByResult(Activation activation) { return activation == Activation::relu; }
/// Whether the derivative is taken of the argument, which is to be kept or made again.
constexpr bool needsArgument(Activation activation) {
  return activation != Activation::none && !isKnownByResult(activation);
}

} // namespace kiln
