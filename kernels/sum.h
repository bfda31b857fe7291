// Sums in a fixed order: the second stage of every kernel that writes partial results, and totals of vectors. The order
// depends on shapes and config only, never on timing, so that two runs agree to the bit.

#pragma once

#include "dialect/dsl/Plan.h"

#include <optional>

namespace kiln {

struct SumConfig {
  int rows = 1;            // rows a program
  int block = 1024;        // columns a program
  int unroll = 1;          // partial results added in parallel
  bool accumulate = false; // adds to the output; set by the plan
};

struct TotalConfig {
  int block = 1024;        // parallel running sums
  bool accumulate = false; // adds to the output; set by the plan
};

extern const Kernel sumPartialsKernel, sumPairKernel, totalKernel;

/// Default configs: for N columns in P parts, and for a total of n elements.
SumConfig pickSum(const Target &target, int64_t P, int64_t N);
TotalConfig pickTotal(const Target &target, int64_t n);

/// out[m, n] (+)= partials[0, m, n] + partials[1, m, n] + …, in f32: config.unroll interleaved sums, then the sum of
/// these. partials (P, M, N) f32, a tensor or a region of workspace; out (M, N). `accumulate` adds to `out`.
Launch launchSum(const Target &target, const Arg &partials, const TensorRef &out, bool accumulate,
                 const std::optional<SumConfig> &config = {});

/// Partial results (P, M, N) f32, a tensor or a region of workspace, and the output of their sum (M, N).
struct PartialSum {
  Arg partials;
  TensorRef out;
};

/// Two sums with equal numbers of parts, as by launchSum(); one launch if the outputs are dense.
std::vector<Launch> launchSums(const Target &target, const PartialSum &first, const PartialSum &second,
                               bool accumulate);

/// out[0] (+)= scale · Σ x. x (N), out (1): for example the mean loss of a batch. `accumulate` adds to `out`.
Plan planTotal(const Target &target, const TensorRef &x, const TensorRef &out, float scale = 1, bool accumulate = false,
               const std::optional<TotalConfig> &config = {});

} // namespace kiln
