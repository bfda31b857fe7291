// GELU and its derivative, as formulas and as elementwise kernels.

#include "kernels/gelu.h"
#include "kernels/blocks.h"
#include "kernels/operands.h"

#include <cmath>

namespace kiln {

// u = √(2/π) · (x + 0.044715 x³), and σ(2u) = 1 / (1 + exp(−2u)). Base 2: exp(−2u) = exp2(−2 log2(e) · u). The constant
// factors are multiplied in advance.
static const double slope = std::sqrt(2 / M_PI);
static constexpr double cubic = 0.044715;

/// σ(2u). If exp2 overflows, the quotient is correctly 0.
static Tile gate(Tile x, Accuracy accuracy) {
  static const double scale = -2 * M_LOG2E * slope;
  Tile exponent = x * fma(x * x, scale * cubic, scale); // −2 log2(e) · u
  return divide(1.0, 1.0 + exp2(exponent, accuracy), accuracy);
}

Tile gelu(Tile x, Accuracy accuracy) { return x * gate(x, accuracy); }

// d/dx [x · σ(2u)] = σ + x · σ (1 − σ) · 2u',   u' = √(2/π) · (1 + 3 · 0.044715 x²)
Tile geluGradient(Tile x, Accuracy accuracy) {
  Tile s = gate(x, accuracy);
  Tile du = fma(x * x, 6 * slope * cubic, 2 * slope); // 2u'
  return s + x * du * s * (1.0 - s);
}

/// out = gelu(x).
static void geluForward(View x, View out, GeluConfig cfg) {
  Tile n = program_id() * cfg.block;
  Tile value = cast(load(x, {n}, {cfg.block}), f32); // (BLOCK)
  store(out, {n}, cast(gelu(value, accuracyFor(out)), out.type()));
}

/// dx = dout · gelu'(x).
static void geluBackward(View x, View dout, View dx, GeluConfig cfg) {
  Tile n = program_id() * cfg.block;
  Tile value = cast(load(x, {n}, {cfg.block}), f32); // (BLOCK)
  Tile g = cast(load(dout, {n}, {cfg.block}), f32);  // (BLOCK)
  store(dx, {n}, cast(g * geluGradient(value, accuracyFor(dx)), dx.type()));
}

static std::vector<Field> fields() { return {field("block", &GeluConfig::block, "elements a program")}; }
const Kernel geluKernel = kernel("gelu", geluForward, {"x (N)", "out (N)"}, fields());
const Kernel geluBackwardKernel =
    kernel("gelu_backward", geluBackward, {"x (N), the input of gelu", "dout (N)", "dx (N)"}, fields());

GeluConfig pickGelu(const Target &target, int64_t n) { return {.block = pickBlock(target, n, /*onCpu=*/4096)}; }

Plan planGelu(const Target &target, const TensorRef &x, const TensorRef &out, const std::optional<GeluConfig> &config) {
  checkOperands(geluKernel, {x, out});
  const GeluConfig chosen = config.value_or(pickGelu(target, x.extents[0]));
  const int64_t count = cdiv(x.extents[0], chosen.block);
  return {.launches = {makeLaunch(geluKernel, chosen, programs(count), {x, out})}};
}

Plan planGeluBackward(const Target &target, const TensorRef &x, const TensorRef &dout, const TensorRef &dx,
                      const std::optional<GeluConfig> &config) {
  checkOperands(geluBackwardKernel, {x, dout, dx});
  const GeluConfig chosen = config.value_or(pickGelu(target, x.extents[0]));
  const int64_t count = cdiv(x.extents[0], chosen.block);
  return {.launches = {makeLaunch(geluBackwardKernel, chosen, programs(count), {x, dout, dx})}};
}

} // namespace kiln
