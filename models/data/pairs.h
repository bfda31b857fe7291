// Pairs of token sequences as micro-batches: pairs of like lengths are put together, so that little of a batch is
// padding. Which shapes there are does not depend on chance: each pass shuffles the pairs of the same two lengths, and
// the order of the batches.

#pragma once

#include "models/data/host_batch.h"
#include "models/data/random.h"

namespace kiln {

/// Sequences that are made from sources, without marks.
struct TokenPair {
  std::vector<int32_t> source, target;
};

/// The tokens that stand in front of a sequence and behind it, and behind a source.
struct PairMarks {
  int32_t begin = 0, end = 0, sourceEnd = 0;
};

/// What a micro-batch may have at most.
struct PairLimits {
  int64_t sequences = 0;
  int64_t places = 0; // of all sources, and of all sequences, padding and marks included; 0: any
};

class PairBatches {
public:
  /// With a seed the batches come in random order, pass by pass; without one from the shortest to the longest. Throws
  /// Error where there is no pair, and for one that is longer than a micro-batch may be.
  PairBatches(std::vector<TokenPair> pairs, const PairMarks &marks, const PairLimits &limits,
              std::optional<uint64_t> seed = {});

  /// Micro-batches of a pass, and the shapes that they have, each once.
  int64_t batches() const { return std::ssize(begins) - 1; }
  std::vector<BatchShape> shapes() const;
  /// Micro-batch `number` of the endless stream, a function of the seed and that number alone: `tokens`, `targets`,
  /// `source tokens` and `source ranges`, as models/nn/encoder.h has them.
  HostBatch batch(int64_t number);
  /// Its shape, without making it.
  BatchShape shape(int64_t number) { return shapeOf(drawn(number)); }
  /// The targets in it.
  int64_t targets(int64_t number);

private:
  /// Which batch of its pass it is, once that is drawn.
  int64_t drawn(int64_t number);
  BatchShape shapeOf(int64_t batch) const;

  std::vector<TokenPair> pairs; // from the shortest to the longest
  PairMarks marks;
  std::optional<Random> random;
  std::vector<int64_t> begins;       // the first pair of each batch, and behind the last one
  int64_t pass = -1;                 // that the next two are of
  std::vector<int64_t> order, turns; // of pairs, of batches
};

} // namespace kiln
