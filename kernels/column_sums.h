// Sums of columns, in a written order: the gradient of a bias whose weights' kernel has none of its own to give.

#pragma once

#include "dialect/dsl/Plan.h"

#include <optional>

namespace kiln {

struct ColumnSumsConfig {
  int rows = 64;     // rows a program, which leaves one partial sum of each of its columns
  int columns = 256; // columns a program
  int block = 4;     // rows that are added side by side
};

extern const Kernel columnSumsKernel;

/// The part of (N, C) that a program sums on a machine.
ColumnSumsConfig pickColumnSums(const Target &target, int64_t N, int64_t C);

/// out[c] (+)= Σ_n x[n, c], in f32. x (N, C) with any row stride, out (C). Workspace: ⌈N / config.rows⌉ · C f32.
Plan planColumnSums(const Target &target, const TensorRef &x, const TensorRef &out, bool accumulate,
                    const std::optional<ColumnSumsConfig> &config = {});

} // namespace kiln
