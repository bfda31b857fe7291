// Column sums in a fixed order: the gradient of a bias whose weight-gradient kernel does not compute it.

#pragma once

#include "dialect/dsl/Plan.h"

#include <optional>

namespace kiln {

struct ColumnSumsConfig {
  int rows = 64;     // rows a program, which writes one partial sum for each of its columns
  int columns = 256; // columns a program
  int block = 4;     // rows added in parallel
};

extern const Kernel columnSumsKernel;

/// Default config for (N, C).
ColumnSumsConfig pickColumnSums(const Target &target, int64_t N, int64_t C);

/// out[c] (+)= Σ_n x[n, c], in f32. x (N, C) with any row stride, out (C). Workspace: ⌈N / config.rows⌉ · C f32.
Plan planColumnSums(const Target &target, const TensorRef &x, const TensorRef &out, bool accumulate,
                    const std::optional<ColumnSumsConfig> &config = {});

} // namespace kiln
