// Shapes of one kind have equal buckets: of their numbers of rows, including those of loss chunks, and of their
// lengths.

#include "models/train/shapes.h"

#include "models/nn/build.h"

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

std::vector<BatchShape> oneOfEachKind(const std::vector<BatchShape> &shapes, const Target &target, int64_t lossChunks) {
  std::map<std::array<int64_t, 7>, BatchShape> kinds;
  for (const BatchShape &shape : shapes) {
    auto chunks = lossChunksOf(target, shape.targets(), lossChunks);
    std::erase_if(chunks, [](const auto &chunk) { return chunk.second == 0; });
    kinds.emplace(std::array{target.bucket(shape.targets()), target.bucket(shape.sources()),
                             target.lengthBucket(shape.target), target.lengthBucket(shape.source),
                             target.bucket(chunks.front().second), target.bucket(chunks.back().second),
                             std::min<int64_t>(std::ssize(chunks), 2)},
                  shape);
  }
  std::vector<BatchShape> one;
  for (const auto &[kind, shape] : kinds)
    one.push_back(shape);
  return one;
}

} // namespace kiln
