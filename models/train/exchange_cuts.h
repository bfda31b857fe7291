// Cuts the launches of a backward pass where gradient buckets become complete, so that ranks exchange a bucket while
// the rest runs.
//
//     launches   |  …  dW of layer 1  |  …  dW of layer 0  |  …  embeddings  |
//     buckets                         | 2                  | 1               | 0      complete from here on

#pragma once

#include "dialect/dsl/Plan.h"
#include "models/parallel/shards.h"

#include <vector>

namespace kiln {

/// Launches, and the number of buckets that they complete.
struct PlanPart {
  Plan plan;
  int64_t buckets = 0;
};

/// The buckets of `gradient`, flat and dense, in the order of the last launch that touches each; untouched ones come
/// first.
std::vector<int64_t> orderOfBuckets(const Plan &plan, const TensorRef &gradient, const Shards &shards);

/// The plan, cut where the next bucket in this order is complete. It has all launches, in order, and all buckets. The
/// parts share the plan's workspace.
std::vector<PlanPart> cutAtBuckets(const Plan &plan, const TensorRef &gradient, const Shards &shards,
                                   const std::vector<int64_t> &order);

} // namespace kiln
