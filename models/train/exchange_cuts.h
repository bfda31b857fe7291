// Where the launches of a backward pass leave buckets of the gradients whole, so that ranks exchange these while the
// rest of it runs.
//
//     launches   |  …  dW of layer 1  |  …  dW of layer 0  |  …  embeddings  |
//     buckets                         | 2                  | 1               | 0      whole from here on

#pragma once

#include "dialect/dsl/Plan.h"
#include "models/parallel/shards.h"

#include <vector>

namespace kiln {

/// Launches, and how many buckets more are whole behind them.
struct PlanPart {
  Plan plan;
  int64_t buckets = 0;
};

/// The buckets of `gradient`, flat and dense, in the order in which the launches touch them last; those that none
/// touches come first.
std::vector<int64_t> orderOfBuckets(const Plan &plan, const TensorRef &gradient, const Shards &shards);

/// The plan, cut where the next bucket in this order is whole. All of its launches, in order; all buckets. The parts
/// have the plan's workspace.
std::vector<PlanPart> cutAtBuckets(const Plan &plan, const TensorRef &gradient, const Shards &shards,
                                   const std::vector<int64_t> &order);

} // namespace kiln
