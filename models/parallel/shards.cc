// Buckets of one size, but for the last.

#include "models/parallel/shards.h"
#include "dialect/dsl/Plan.h"
#include "kernels/adamw.h"

#include <algorithm>

namespace kiln {

/// Elements of a bucket, about: 16 MiB of gradients, so that an exchange is long beside what it takes to begin one.
static constexpr int64_t mostOfBucket = int64_t{1} << 22;

Shards Shards::of(int64_t count, int64_t ranks) {
  if (ranks == 1)
    return {count, 1, count, std::max<int64_t>(count, 1)};
  const int64_t unit = adamwUnit * ranks;
  return {count, ranks, ceildiv(count, unit) * unit, ceildiv(mostOfBucket, unit) * unit};
}

Piece Shards::whole(int64_t b) const {
  const int64_t begin = b * bucket;
  return {begin, std::min(bucket, padded - begin), begin / ranks};
}

Piece Shards::piece(int64_t b, int64_t rank) const {
  const Piece all = whole(b);
  const int64_t each = all.count / ranks;
  return {all.begin + rank * each, each, all.local};
}

} // namespace kiln
