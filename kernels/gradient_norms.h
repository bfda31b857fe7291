// Gradient norms of parts of a flat gradient, such as the layers of a model. Chunks of elements end where a part ends.
// Their sums of squares are added in order, so two runs agree to the bit.

#pragma once

#include "dialect/dsl/Plan.h"

#include <optional>

namespace kiln {

/// Elements of a chunk, which one program sums.
inline constexpr int64_t gradientChunk = 65536;

struct GradientSquaresConfig {
  int block = 1024; // elements, or chunks, in parallel
};

extern const Kernel gradientSquaresKernel, gradientNormsKernel;

/// A range of elements that belongs to a group.
struct GroupRange {
  int64_t begin = 0, end = 0;
  int64_t group = 0;
};

/// Begins and ends of the chunks, and for each group the index of its first chunk, with one more entry for the end.
/// Host arrays of i64.
struct GroupChunks {
  std::vector<int64_t> begins, ends, firsts;
};
/// Cuts the ranges of `groups` groups into chunks of at most `chunk` elements, group by group.
GroupChunks cutIntoChunks(std::vector<GroupRange> ranges, int64_t groups, int64_t chunk = gradientChunk);

/// norms[i] = √Σ g² · unscale over the elements of group i. g (n); begins, ends (P) and firsts (G + 1) i64 from
/// cutIntoChunks(); record (stepFields) f32, from which `unscale` is read; norms (G) f32. Workspace: P f32.
Plan planGradientNorms(const Target &target, const TensorRef &g, const TensorRef &begins, const TensorRef &ends,
                       const TensorRef &firsts, const TensorRef &record, const TensorRef &norms,
                       const std::optional<GradientSquaresConfig> &config = {});

} // namespace kiln
