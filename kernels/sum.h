// Sums in a written order: the second stage of every kernel that leaves partial results, and totals of
// vectors. The order depends on shapes and config only, never on who ran when, so that two runs agree to the
// bit.

#pragma once

#include "dialect/dsl/Plan.h"

#include <optional>

namespace kiln {

struct SumConfig {
  int rows = 1;            // rows a program
  int block = 1024;        // columns a program
  int parts = 1;           // partial results that are added side by side
  bool accumulate = false; // adds to what the output holds; set by the plan
};

struct TotalConfig {
  int block = 1024;        // running sums side by side
  bool accumulate = false; // adds to what the output holds; set by the plan
};

extern const Kernel sumPartialsKernel, sumPairKernel, totalKernel;

/// The columns of a program for N of them in P parts, and the sums side by side of a total of n, on a machine.
SumConfig pickSum(const Target &target, int64_t P, int64_t N);
TotalConfig pickTotal(const Target &target, int64_t n);

/// out[m, n] (+)= partials[0, m, n] + partials[1, m, n] + …, in f32: every config.parts-th in turn, then these sums
/// together.
/// partials (P, M, N) f32, a tensor or a region of workspace; out (M, N). `accumulate` adds to what `out`
/// holds.
Launch launchSum(const Target &target, const Arg &partials, const TensorRef &out, bool accumulate,
                 const std::optional<SumConfig> &config = {});

/// Partial results (P, M, N) f32, a tensor or a region of workspace, and where their sum goes (M, N).
struct PartialSum {
  Arg partials;
  TensorRef out;
};

/// Both sums, of as many parts each, as launchSum() has them: in one launch where the outputs are dense.
std::vector<Launch> launchSums(const Target &target, const PartialSum &first, const PartialSum &second,
                               bool accumulate);

/// out[0] (+)= scale · Σ x. x (N), out (1): the mean loss of a batch, for one. `accumulate` adds to what `out` holds.
Plan planTotal(const Target &target, const TensorRef &x, const TensorRef &out, float scale = 1, bool accumulate = false,
               const std::optional<TotalConfig> &config = {});

} // namespace kiln
