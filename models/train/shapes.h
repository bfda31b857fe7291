// What a trainer asks of all the shapes that its micro-batches have.

#pragma once

#include "dialect/dsl/Plan.h"
#include "models/data/host_batch.h"

#include <vector>

namespace kiln {

/// The most targets that one of them has.
int64_t mostTargets(const std::vector<BatchShape> &shapes);
/// One shape of each kind that what plans pick for `target` may depend on, where losses are taken in so many chunks:
/// the kernels of these are those of all.
std::vector<BatchShape> oneOfEachKind(const std::vector<BatchShape> &shapes, const Target &target, int64_t lossChunks);

} // namespace kiln
