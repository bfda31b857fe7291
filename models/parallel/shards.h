// Sharding of flat buffers over ranks: buckets and pieces, the traffic of a step, and where a backward pass completes
// buckets.

#pragma once

#include "dialect/dsl/Plan.h"

#include <cstdint>
#include <vector>

namespace kiln {

//===-- Buckets and pieces --------------------------------------------------------------------------------------===//
// Sharding of the optimizer state over ranks (ZeRO-1; Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training
// Trillion Parameter Models", 2020). A flat buffer is cut into consecutive buckets, and each bucket into one piece for
// each rank. A rank has the moments of its piece of every bucket, one after the other.
//
//     elements  0        …  2 ranks, 2 buckets
//     buckets  |      0      |    1    |        a bucket is exchanged as soon as its gradient is complete
//     ranks    |  0   |  1   | 0  | 1  |        rank 1 has |  1   | 1  |

/// A piece of a flat buffer, and its offset in the rank's own memory.
struct Piece {
  int64_t begin = 0, count = 0, local = 0;
};

struct Shards {
  int64_t count = 0; // elements of the flat buffer
  int64_t ranks = 1;
  int64_t padded = 0; // with zero padding, a multiple of the ranks
  int64_t bucket = 0; // elements of a bucket; the last one may have fewer

  /// Default number of elements of a bucket, about: 16 MiB of gradients, so that an exchange takes long compared with
  /// its start.
  static constexpr int64_t usualBucket = int64_t{1} << 22;
  /// Shards of `count` elements. Pieces begin at multiples of `adamwUnit`; one rank has one bucket and no padding.
  static Shards of(int64_t count, int64_t ranks, int64_t bucket = 0);

  int64_t buckets() const { return padded == 0 ? 0 : (padded + bucket - 1) / bucket; }
  /// Elements of one rank.
  int64_t own() const { return padded / ranks; }
  /// Elements of the largest piece.
  int64_t largest() const { return (padded < bucket ? padded : bucket) / ranks; }
  /// Bucket `b` of all ranks, and the piece of `rank`.
  Piece whole(int64_t b) const;
  Piece piece(int64_t b, int64_t rank) const;

  /// Calls `each(begin, local, count)` for every part of the elements [begin, begin + number) that `rank` has. The
  /// arguments are the part's offset in the flat buffer, its offset in the rank's memory, and its length.
  template <class Each> void parts(int64_t rank, int64_t begin, int64_t number, Each each) const {
    for (int64_t b = number > 0 ? begin / bucket : 0; number > 0 && b < buckets(); ++b) {
      const Piece p = piece(b, rank);
      if (p.begin >= begin + number)
        break;
      const int64_t from = p.begin < begin ? begin : p.begin, end = p.begin + p.count,
                    to = end < begin + number ? end : begin + number;
      if (from < to)
        each(from, p.local + from - p.begin, to - from);
    }
  }
};

//===-- Traffic -------------------------------------------------------------------------------------------------===//
// The traffic of a rank in a step, and its time by a network model. The parameters are given, not measured.

/// The traffic of a rank in a step, in each direction, and the number of exchanges.
struct ExchangePlan {
  int64_t gradients = 0, weights = 0; // bytes
  int64_t rounds = 0;                 // exchanges, each of a message to every other rank

  int64_t bytes() const { return gradients + weights; }
  /// Seconds, with `bandwidth` bytes a second in each direction, and `latency` seconds before an exchange moves
  /// anything. Nothing overlaps.
  double seconds(double bandwidth, double latency) const;
};

/// For gradients in f32, and weights whose elements have `weightBytes`: each rank sends (R − 1) / R of both.
ExchangePlan exchangePlan(const Shards &shards, int64_t weightBytes);

/// Default parameters of seconds(): ten gigabits a second minus protocol overhead, and the time of a small message over
/// TCP.
inline constexpr double assumedBandwidth = 1e9, assumedLatency = 50e-6;

//===-- Cuts of a plan ------------------------------------------------------------------------------------------===//
// Cuts the launches of a backward pass where gradient buckets become complete, so that ranks exchange a bucket while
// the rest runs.
//
//     launches   |  …  dW of layer 1  |  …  dW of layer 0  |  …  embeddings  |
//     buckets                         | 2                  | 1               | 0      complete from here on

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
