// Kinds are told apart by the buckets of numbers of rows and of lengths. On a GPU the width of an access follows from
// what extents and strides are multiples of, and with it the compiled kernel: there each shape is of a kind of its own.

#include "models/train/shapes.h"

#include <algorithm>
#include <array>
#include <map>

namespace kiln {

int64_t mostTargets(const std::vector<BatchShape> &shapes) {
  int64_t most = 0;
  for (const BatchShape &shape : shapes)
    most = std::max(most, shape.targets());
  return most;
}

std::vector<BatchShape> oneOfEachKind(const std::vector<BatchShape> &shapes, const Target &target) {
  if (target.visit([](const CpuFacts &) { return false; }, [](const GpuFacts &) { return true; }))
    return shapes;
  std::map<std::array<int64_t, 4>, BatchShape> kinds;
  for (const BatchShape &shape : shapes)
    kinds.emplace(std::array{target.bucket(shape.targets()), target.bucket(shape.sources()),
                             target.lengthBucket(shape.target), target.lengthBucket(shape.source)},
                  shape);
  std::vector<BatchShape> one;
  for (const auto &[kind, shape] : kinds)
    one.push_back(shape);
  return one;
}

} // namespace kiln
