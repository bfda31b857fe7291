// The optimizer: AdamW over flat buffers in one launch, and the global gradient norm for gradient clipping. Kernels
// read values that change from step to step from a record in device memory. So every step has equal launches, and the
// host reads nothing back before its end. Loshchilov & Hutter, "Decoupled Weight Decay Regularization", 2019,
// algorithm 2:
//
//     m = β₁ m + (1 − β₁) g          p = p − lr · (m̂ / (√v̂ + ε) + λ p)
//     v = β₂ v + (1 − β₂) g²         m̂ = m / (1 − β₁ᵗ),  v̂ = v / (1 − β₂ᵗ)
//
// Small gradients underflow in f16. There the loss is multiplied by a loss scale, which the record holds. If the
// gradient norm is not finite, the step changes only the scale, which halves. After a number of good steps the scale
// doubles (Micikevicius et al., "Mixed Precision Training", 2018).

#pragma once

#include "dialect/dsl/Plan.h"
#include "kernels/rounding.h"

#include <array>
#include <limits>
#include <optional>

namespace kiln {

struct AdamWConfig {
  int block = 1024;       // elements a program
  bool zeroGrad = false;  // sets g to zero; set by the plan
  bool storeCopy = false; // writes a narrow copy of p; set by the plan
  WeightRounding rounding = WeightRounding::nearest;
};

struct SquaresConfig {
  int block = 1024;      // parallel running sums
  int64_t chunk = 65536; // elements a program
};

/// Default configs for n elements. The chunks of the norm, and so its rounding, are equal on all machines.
AdamWConfig pickAdamW(const Target &target, int64_t n);
SquaresConfig pickSquares(const Target &target);

extern const Kernel adamwKernel, squaresKernel, normKernel;

/// Fields of the record of a step, f32 each. makeStepRecord() fills it before the step; the last kernel of the gradient
/// norm completes it.
enum class StepField : int {
  loss,      // of the step; callers that log it may add the sum of the losses here
  norm,      // √Σ g² · unscale, the gradient norm; written by the norm kernel
  factor,    // multiplies g: unscale times the clip factor; written by the norm kernel
  applied,   // 1, or 0 to skip the step if the norm is not finite; written by the norm kernel
  rate,      // the learning rate
  unbias1,   // 1 / (1 − β₁ᵗ)
  unbias2,   // 1 / (1 − β₂ᵗ)
  clip,      // largest gradient norm without clipping
  scale,     // the loss scale; the norm kernel replaces it by that of the next step
  unscale,   // 1 / scale of this step
  good,      // good steps since the scale last changed; the norm kernel updates it
  window,    // good steps after which the scale doubles; 0: never
  weight,    // multiplies the sum of the step's losses before the backward pass: scale / targets
  draw,      // distinguishes the random numbers of steps
  lossZ,     // standard deviations of the loss above its recent mean; written by kernels/outliers.h
  normZ,     // standard deviations of the gradient norm above its recent mean
  count = 16 // size of the record; unnamed fields are 0
};
inline constexpr int64_t stepFields = static_cast<int64_t>(StepField::count);

/// A record in host memory, to be uploaded to a tensor (stepFields) f32.
struct StepRecord {
  std::array<float, stepFields> numbers = {};
  float operator[](StepField field) const { return numbers[static_cast<size_t>(field)]; }
  float &operator[](StepField field) { return numbers[static_cast<size_t>(field)]; }
};

/// Bounds of the loss scale.
inline constexpr double minLossScale = 1, maxLossScale = 0x1p24;

/// Settings that are constant during a run.
struct AdamWSettings {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double decay = 0.1;                                // λ, for the first `decayed` elements; 0 for the rest
  int64_t decayed = 0;                               // the decaying tensors come first
  bool zeroGrad = false;                             // sets g to zero for the next accumulation
  WeightRounding rounding = WeightRounding::nearest; // of a narrow p
  uint64_t seed = 1;                                 // of stochastic rounding
  int64_t offset = 0;                                // index of p[0] in the whole flat buffer, for stochastic rounding
};

/// Settings that change from step to step.
struct AdamWStep {
  double rate = 3e-4;                                    // the learning rate
  int64_t step = 1;                                      // t, counted from 1
  double clip = std::numeric_limits<double>::infinity(); // largest gradient norm (clipping)
  double lossScale = 1;                                  // the loss was multiplied by it
  int64_t targets = 1; // number of targets of the step, over which the loss is averaged
  int64_t good = 0;    // good steps since the loss scale last changed
  int64_t window = 0;  // good steps after which the scale doubles; 0: never
};

/// The record of a step; each number is rounded to f32 once. If planGradNorm does not run, the gradient is not clipped.
/// Throws Error for a step below 1.
StepRecord makeStepRecord(const AdamWSettings &settings, const AdamWStep &step);

/// Elements that share a random number in stochastic rounding. A part of a larger buffer must begin at a multiple of
/// it.
inline constexpr int64_t adamwUnit = 2048;

/// Updates p, m and v in place with the values of `record`; sets g to zero if settings.zeroGrad. p, g, m, v (n), dense;
/// record (stepFields) f32. m and v are f32; p and g are f32, bf16 or f16. settings.rounding is the rounding of a
/// narrow p. The random bits of stochastic rounding depend on seed, step and element index, counted from
/// settings.offset. Throws Error unless the offset is a multiple of adamwUnit. With `copy` (n), bf16 or f16, p is f32
/// and also written to `copy`, rounded to nearest.
Plan planAdamW(const Target &target, const TensorRef &p, const TensorRef &g, const TensorRef &m, const TensorRef &v,
               const TensorRef &record, const AdamWSettings &settings, const std::optional<TensorRef> &copy = {},
               const std::optional<AdamWConfig> &config = {});

/// Completes `record` (stepFields) f32 from the gradient g (n). norm = √Σ g² · unscale, and factor = unscale · min(1,
/// clip / norm). It also writes whether to apply the step, and the scale and good steps of the next one. The quotient
/// clip / norm is an f32 division, correctly rounded. Workspace: ⌈n / config.chunk⌉ f32.
Plan planGradNorm(const Target &target, const TensorRef &g, const TensorRef &record,
                  const std::optional<SquaresConfig> &config = {});

/// planGradNorm in two stages, for a gradient that is sharded over ranks. The first writes sums of squares of chunks,
/// partials (P) f32 with P = countPartialSums(target, n). The second completes the record from the partials of all
/// ranks, in order.
int64_t countPartialSums(const Target &target, int64_t n);
Plan planSquares(const Target &target, const TensorRef &g, const Arg &partials,
                 const std::optional<SquaresConfig> &config = {});
Plan planNorm(const Target &target, const Arg &partials, const TensorRef &record,
              const std::optional<SquaresConfig> &config = {});

} // namespace kiln
