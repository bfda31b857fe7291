// Norms of parts of a flat gradient: of each layer's, say. Chunks of elements end where a part does, and the sums of
// their squares are added in order, so that two runs agree to the bit.

#pragma once

#include "dialect/dsl/Plan.h"

#include <optional>

namespace kiln {

struct GroupSquaresConfig {
  int block = 1024; // elements, or chunks, side by side
};

extern const Kernel groupSquaresKernel, groupNormsKernel;

/// A run of elements that belongs to a group.
struct GroupRange {
  int64_t begin = 0, end = 0;
  int64_t group = 0;
};

/// Where chunks begin and end, and the first chunk of each group and behind the last one: host arrays of i64.
struct GroupChunks {
  std::vector<int64_t> begins, ends, firsts;
};
/// The ranges cut into chunks of at most `chunk` elements, group by group; `groups` of them.
GroupChunks chunksOf(std::vector<GroupRange> ranges, int64_t groups, int64_t chunk = 65536);

/// norms[i] = √Σ g² · unscale over the elements of group i. g (n); begins, ends (P) and firsts (G + 1) i64, of
/// chunksOf(); record (stepFields) f32, of which `unscale` is read; norms (G) f32. Workspace: P f32.
Plan planGroupNorms(const Target &target, const TensorRef &g, const TensorRef &begins, const TensorRef &ends,
                    const TensorRef &firsts, const TensorRef &record, const TensorRef &norms,
                    const std::optional<GroupSquaresConfig> &config = {});

} // namespace kiln
