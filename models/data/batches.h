// Which bytes a training step sees. A pass over the text cuts it, from a random first byte, into sequences that do not
// overlap, and takes them in random order; each pass draws anew. Sequence number n is a function of seed and n alone.

#pragma once

#include "models/data/random.h"

namespace kiln {

/// Sequences of `context` tokens each with the tokens that follow them.
struct Batch {
  std::vector<int32_t> tokens, targets; // (sequences, context)
};

class TrainBatches {
public:
  TrainBatches(const std::vector<uint8_t> &text, int64_t context, uint64_t seed);

  /// Sequences `first` … `first + count` of the endless stream.
  Batch sequences(int64_t first, int64_t count);
  /// Sequences that one pass over the text takes.
  int64_t sequencesPerPass() const { return perPass; }

private:
  void drawPass(int64_t pass);

  const std::vector<uint8_t> &text;
  int64_t context, perPass;
  Random random;
  int64_t drawn = -1;          // pass that `begins` belongs to
  std::vector<int64_t> begins; // first byte of each sequence of that pass
};

/// The sequences of a validation text, one after the other. The last one may be short: its missing targets are
/// `ignoredTarget`, so that a loss summed over all sequences counts every byte but the first once.
inline constexpr int32_t ignoredTarget = -1;
int64_t validationSequences(int64_t bytes, int64_t context);
Batch validationBatch(const std::vector<uint8_t> &text, int64_t context, int64_t first, int64_t count);

} // namespace kiln
