// Sums in a written order: the second stage of every kernel that leaves partial results, and totals of
// vectors. The order depends on shapes and config only, never on who ran when, so that two runs agree to the
// bit.

#pragma once

#include "dialect/dsl/Plan.h"

namespace kiln {

struct SumConfig {
  int rows = 1;            // rows a program
  int block = 1024;        // columns a program
  bool accumulate = false; // adds to what the output holds; set by the plan
};

struct TotalConfig {
  int block = 1024; // running sums side by side
};

extern const Kernel sumPartialsKernel, totalKernel;

/// out[m, n] (+)= partials[0, m, n] + partials[1, m, n] + …, in that order, in f32.
/// partials (P, M, N) f32, a tensor or a region of workspace; out (M, N). `accumulate` adds to what `out`
/// holds.
Launch launchSum(const Arg &partials, const TensorRef &out, bool accumulate, SumConfig config = {});

/// out[0] = scale · Σ x. x (N), out (1): the mean loss of a batch, for one.
Plan planTotal(const Target &target, const TensorRef &x, const TensorRef &out, float scale = 1,
               const TotalConfig &config = {});

} // namespace kiln
