// The keys and values of new places of sequences, behind those that a cache holds: what attention over all places so
// far then reads, without computing any of them again.

#pragma once

#include "dialect/dsl/Plan.h"

#include <optional>

namespace kiln {

struct CacheAppendConfig {
  int rows = 1; // new places that a program copies; they divide n
};

extern const Kernel cacheAppendKernel;

/// keys[b, h, starts[b] + i] = k[b, h, i], and so the values. k, v (B, H, n, D), any strides whose last is 1; keys,
/// values (B, H, T, D); starts (B) i32. Places that the cache does not have are left out: a sequence that starts at T
/// or beyond stays as it is.
Plan planCacheAppend(const Target &target, const TensorRef &k, const TensorRef &v, const TensorRef &starts,
                     const TensorRef &keys, const TensorRef &values,
                     const std::optional<CacheAppendConfig> &config = {});

} // namespace kiln
