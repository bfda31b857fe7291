// Appends the keys and values of new positions to a KV cache, so that attention over all positions recomputes none of
// them.

#pragma once

#include "dialect/dsl/Plan.h"

#include <optional>

namespace kiln {

struct CacheAppendConfig {
  int rows = 1; // new positions a program; divides n
};

extern const Kernel cacheAppendKernel;

/// keys[b, h, starts[b] + i] = k[b, h, i], and likewise for values. k, v (B, H, n, D), any strides whose last is 1;
/// keys, values (B, H, T, D); starts (B) i32. Positions outside the cache are skipped: a sequence that starts at T or
/// later does not change.
Plan planCacheAppend(const Target &target, const TensorRef &k, const TensorRef &v, const TensorRef &starts,
                     const TensorRef &keys, const TensorRef &values,
                     const std::optional<CacheAppendConfig> &config = {});

} // namespace kiln
