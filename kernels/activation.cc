// Activations and their derivatives.

#include "kernels/activation.h"
#include "kernels/gelu.h"

#include <cmath>

namespace kiln {

/// 1 / (1 + exp(−x)). If exp2 overflows, the quotient is correctly 0.
static Tile logistic(Tile x, Accuracy accuracy) { return divide(1.0, 1.0 + exp2(x * -M_LOG2E, accuracy), accuracy); }

/// Φ(x), the standard normal distribution function.
static Tile normalCdf(Tile x) { return fma(erf(x * M_SQRT1_2), 0.5, 0.5); }

Tile activate(Activation activation, Tile x, Accuracy accuracy) {
  switch (activation) {
  case Activation::none:
    return x;
  case Activation::gelu:
    return gelu(x, accuracy);
  case Activation::gelu_erf:
    return x * normalCdf(x);
  case Activation::relu:
    return max(x, 0.0);
  case Activation::relu2: {
    Tile positive = max(x, 0.0);
    return positive * positive;
  }
  case Activation::silu:
    return x * logistic(x, accuracy);
  }
  return x;
}

Tile activationDerivative(Activation activation, Tile from, Accuracy accuracy) {
  switch (activation) {
  case Activation::none:
    return full(f32, from.shape(), 1.0);
  case Activation::gelu:
    return geluGradient(from, accuracy);
  case Activation::gelu_erf: // Φ(x) + x · φ(x),   φ(x) = exp(−x²/2) / √(2π)
    return normalCdf(from) + from * exp2(from * from * (-M_LOG2E / 2), accuracy) * (M_2_SQRTPI * M_SQRT1_2 / 2);
  case Activation::relu:
    return where(from > 0.0, 1.0, 0.0);
  case Activation::relu2:
    return max(from, 0.0) * 2.0;
  case Activation::silu: { // σ + x · σ · (1 − σ)
    Tile s = logistic(from, accuracy);
    return s + from * s * (1.0 - s);
  }
  }
  return from;
}

} // namespace kiln
