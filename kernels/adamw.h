// The optimiser: AdamW over flat buffers in one launch, and the global gradient norm that clipping needs. What changes
// from step to step reaches the kernels through a record in device memory, so that the launches of a step are the same
// every step and nothing is read back before its end.
// Loshchilov & Hutter, "Decoupled Weight Decay Regularization", 2019, algorithm 2:
//
//     m = β₁ m + (1 − β₁) g          p = p − lr · (m̂ / (√v̂ + ε) + λ p)
//     v = β₂ v + (1 − β₂) g²         m̂ = m / (1 − β₁ᵗ),  v̂ = v / (1 − β₂ᵗ)
//
// Small gradients vanish in f16: there the loss is multiplied by a scale, which the record carries. Where the norm of
// the gradient is not finite, the step changes nothing but the scale, which halves; after a number of good steps it
// doubles (Micikevicius et al., "Mixed Precision Training", 2018).

#pragma once

#include "dialect/dsl/Plan.h"
#include "kernels/rounding.h"

#include <array>
#include <limits>
#include <optional>

namespace kiln {

struct AdamWConfig {
  int block = 1024;      // elements a program
  bool zeroGrad = false; // leaves zeros in g; set by the plan
  bool copies = false;   // p is written in a narrow type too; set by the plan
  Rounding rounding = Rounding::nearest;
};

struct SquaresConfig {
  int block = 1024;      // running sums side by side
  int64_t chunk = 65536; // elements a program
};

/// The blocks for n elements on a machine. A norm's chunks, and so its rounding, are the same on every machine.
AdamWConfig pickAdamW(const Target &target, int64_t n);
SquaresConfig pickSquares(const Target &target);

extern const Kernel adamwKernel, squaresKernel, normKernel;

/// The fields of a step's record, f32 each. recordOf() fills it before the step, the norm's last kernel completes it.
enum class StepField : int {
  loss,      // of the step; kept for whoever reports it, who may have the losses' sum added here
  norm,      // √Σ g² · unscale, written by the norm's kernel
  factor,    // what g is multiplied by: unscale, and clipping; written by the norm's kernel
  applied,   // 1, or 0 when the norm is not finite, and then the step changes nothing; written by the norm's kernel
  rate,      // the learning rate
  unbias1,   // 1 / (1 − β₁ᵗ)
  unbias2,   // 1 / (1 − β₂ᵗ)
  clip,      // largest norm that is not clipped
  scale,     // what the loss is multiplied by; the norm's kernel leaves the next step's
  unscale,   // 1 / scale of this step
  good,      // steps applied since the scale last changed; the norm's kernel leaves the next step's
  window,    // so many of them double the scale; 0: it never grows
  weight,    // what the sum of the step's losses is multiplied by before its gradient is taken: scale / targets
  draw,      // tells the random numbers of this step from those of others
  lossZ,     // deviations of the loss above the mean of the last ones; written by kernels/outliers.h
  normZ,     // the same of the norm
  count = 16 // numbers in a record; those without a name are 0
};
inline constexpr int64_t stepFields = static_cast<int64_t>(StepField::count);

/// A record in host memory, to be uploaded to a tensor (stepFields) f32.
struct StepRecord {
  std::array<float, stepFields> numbers = {};
  float operator[](StepField field) const { return numbers[static_cast<size_t>(field)]; }
  float &operator[](StepField field) { return numbers[static_cast<size_t>(field)]; }
};

/// The scale of the loss stays between these.
inline constexpr double leastLossScale = 1, mostLossScale = 0x1p24;

/// What stays the same from step to step.
struct AdamWSettings {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double decay = 0.1;                    // λ, for the first `decayed` elements; 0 for the rest
  int64_t decayed = 0;                   // models lay the tensors that decay first
  bool zeroGrad = false;                 // leaves zeros in g for the next step's sums
  Rounding rounding = Rounding::nearest; // of p where it is narrow
  uint64_t seed = 1;                     // of rounding by chance
  int64_t offset = 0; // elements before the first in the buffer that this is a part of, of which chances know
};

/// What does not.
struct AdamWStep {
  double rate = 3e-4;                                    // the learning rate
  int64_t step = 1;                                      // t, counted from 1
  double clip = std::numeric_limits<double>::infinity(); // larger norms are scaled to this one
  double lossScale = 1;                                  // what the loss was multiplied by
  int64_t targets = 1;                                   // that are there in the step, whose mean loss it takes
  int64_t good = 0;                                      // steps applied since that last changed
  int64_t window = 0;                                    // so many of them double it; 0: it never grows
};

/// The record of a step, each number rounded to f32 once. As it is, without a norm, nothing is clipped. Throws Error
/// for a step below 1.
StepRecord recordOf(const AdamWSettings &settings, const AdamWStep &step);

/// Elements that rounding by chance draws for together: a part of a larger buffer begins at a multiple of these.
inline constexpr int64_t adamwUnit = 2048;

/// p, m, v (and g) updated in place as `record` says. p, g, m, v (n), dense; record (stepFields) f32. m and v are f32,
/// p and g f32, bf16 or f16. A narrow p is rounded as the settings say, by chance with a number for each seed, step and
/// element, counted from settings.offset on; throws Error unless that is a multiple of adamwUnit. With `copy` (n), bf16
/// or f16, p is f32 and written there too, rounded to nearest.
Plan planAdamW(const Target &target, const TensorRef &p, const TensorRef &g, const TensorRef &m, const TensorRef &v,
               const TensorRef &record, const AdamWSettings &settings, const std::optional<TensorRef> &copy = {},
               const std::optional<AdamWConfig> &config = {});

/// Completes `record` (stepFields) f32 from the gradient g (n): norm = √Σ g² · unscale, factor = unscale · min(1, clip
/// / norm), whether the step is applied, and scale and good steps for the next one. The quotient is f32's, of f32's
/// numbers: where `clip` is one it is the nearest to the true quotient. Workspace: ⌈n / config.chunk⌉ f32.
Plan planGradNorm(const Target &target, const TensorRef &g, const TensorRef &record,
                  const std::optional<SquaresConfig> &config = {});

/// The same in two steps, for a gradient of which others hold the rest: sums of the squares of chunks, partials (P) f32
/// with P = squaresOf(target, n), and what completes the record from all of them, front to back.
int64_t squaresOf(const Target &target, int64_t n);
Plan planSquares(const Target &target, const TensorRef &g, const Arg &partials,
                 const std::optional<SquaresConfig> &config = {});
Plan planNorm(const Target &target, const Arg &partials, const TensorRef &record,
              const std::optional<SquaresConfig> &config = {});

} // namespace kiln
