// Properties of all shapes that a trainer's micro-batches have.

#pragma once

#include "dialect/dsl/Plan.h"
#include "models/data/host_batch.h"

#include <vector>

namespace kiln {

/// The largest number of targets of a shape.
int64_t mostTargets(const std::vector<BatchShape> &shapes);
/// One representative of each class of shapes for which plans on `target` pick equal configs, with this many loss
/// chunks. Their kernels serve all shapes.
std::vector<BatchShape> oneOfEachKind(const std::vector<BatchShape> &shapes, const Target &target, int64_t lossChunks);

} // namespace kiln
