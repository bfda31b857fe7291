// Which tokens a training step sees. A pass over the text cuts it, from a random first token, into sequences that do
// not overlap, and takes them in random order; each pass draws anew. Sequence number n is a function of seed and n
// alone.

#pragma once

#include "models/data/random.h"
#include "models/data/token_stream.h"

namespace kiln {

/// Sequences of `context` tokens each with the tokens that follow them.
struct Batch {
  std::vector<int32_t> tokens, targets; // (sequences, context)
  // Of packed documents (models/data/documents.h): the place in the document (sequences, context); which places each
  // one sees, and which ones see it, as first and behind the last (sequences, context, 2). Neither number ever falls.
  std::vector<int32_t> positions = {}, ranges = {}, columnRanges = {};
};

class TrainBatches {
public:
  TrainBatches(std::shared_ptr<const TokenStream> text, int64_t context, uint64_t seed);

  /// Sequences `first` … `first + count` of the endless stream.
  Batch sequences(int64_t first, int64_t count);
  /// Sequences that one pass over the text takes.
  int64_t sequencesPerPass() const { return perPass; }

private:
  void drawPass(int64_t pass);

  std::shared_ptr<const TokenStream> text;
  int64_t context, perPass;
  Random random;
  int64_t drawn = -1;          // pass that `begins` belongs to
  std::vector<int64_t> begins; // first token of each sequence of that pass
};

/// The sequences of a validation text, one after the other. The last one may be short: its missing targets are
/// `ignoredTarget`, so that a loss summed over all sequences counts every token but the first once.
inline constexpr int32_t ignoredTarget = -1;
int64_t validationSequences(int64_t tokens, int64_t context);
Batch validationBatch(const TokenStream &text, int64_t context, int64_t first, int64_t count);

} // namespace kiln
