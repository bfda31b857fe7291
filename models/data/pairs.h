// Pairs of token sequences as micro-batches. Pairs of similar length share a batch, so that there is little padding.
// The set of shapes is not random: each pass shuffles the pairs of equal lengths, and the order of the batches.

#pragma once

#include "models/data/host_batch.h"
#include "models/data/random.h"

namespace kiln {

/// A source and its target sequence, without special tokens.
struct TokenPair {
  std::vector<int32_t> source, target;
};

/// The tokens before and after a target sequence, and after a source.
struct PairMarks {
  int32_t begin = 0, end = 0, sourceEnd = 0;
};

/// Limits of a micro-batch.
struct PairLimits {
  int64_t sequences = 0;
  int64_t places = 0; // positions of all sources, and of all targets, with padding and special tokens; 0: any
};

class PairBatches {
public:
  /// With a seed the batches come in random order, pass by pass; without one from the shortest to the longest. Throws
  /// Error if there is no pair, or one longer than a micro-batch.
  PairBatches(std::vector<TokenPair> pairs, const PairMarks &marks, const PairLimits &limits,
              std::optional<uint64_t> seed = {});

  /// Number of micro-batches of a pass, and their distinct shapes.
  int64_t batches() const { return std::ssize(begins) - 1; }
  std::vector<BatchShape> shapes() const;
  /// Micro-batch `number` of the endless stream, a function of seed and number: `tokens`, `targets`, `source tokens`
  /// and `source ranges`, as in models/nn/encoder_decoder.h.
  HostBatch batch(int64_t number);
  /// Its shape, without making it.
  BatchShape shape(int64_t number) { return batchShape(drawn(number)); }
  /// The targets in it.
  int64_t targets(int64_t number);

private:
  /// Its index among the batches of its pass, after that pass was shuffled.
  int64_t drawn(int64_t number);
  BatchShape batchShape(int64_t batch) const;

  std::vector<TokenPair> pairs; // from the shortest to the longest
  PairMarks marks;
  std::optional<Random> random;
  std::vector<int64_t> begins;       // the first pair of each batch, and one more for the end
  int64_t pass = -1;                 // the pass of the next two
  std::vector<int64_t> order, turns; // order of pairs, order of batches
};

} // namespace kiln
