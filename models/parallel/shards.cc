// Buckets of equal size; the last may be smaller.

#include "models/parallel/shards.h"
#include "dialect/dsl/Plan.h"
#include "kernels/adamw.h"

#include <algorithm>

namespace kiln {

Shards Shards::of(int64_t count, int64_t ranks, int64_t bucket) {
  if (ranks == 1)
    return {count, 1, count, std::max<int64_t>(count, 1)};
  const int64_t unit = adamwUnit * ranks;
  return {count, ranks, cdiv(count, unit) * unit, cdiv(bucket > 0 ? bucket : usualBucket, unit) * unit};
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
