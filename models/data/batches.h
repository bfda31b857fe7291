// Which tokens a training step sees: sequences of a stream, pass after pass, in an order that each pass draws anew.
// Sequence number n is a function of the order's seed and n alone.

#pragma once

#include "models/data/random.h"
#include "models/data/token_stream.h"

#include <functional>
#include <memory>
#include <vector>

namespace kiln {

/// Sequences of `context` tokens each with the tokens that follow them.
struct Batch {
  std::vector<int32_t> tokens, targets; // (sequences, context)
  // Of packed documents (models/data/documents.h): the place in the document (sequences, context); which places each
  // one sees, and which ones see it, as first and behind the last (sequences, context, 2). Neither number ever falls.
  std::vector<int32_t> positions = {}, ranges = {}, columnRanges = {};
};

/// How passes go through a stream.
struct PassOrder {
  int64_t sequences = 0; // of a pass, at least one
  /// The first token of each sequence of pass number `pass`, from 0 on.
  std::function<std::vector<int64_t>(int64_t pass)> draw;
};

/// A pass cuts `tokens` of them, from a random first one, into sequences that do not overlap, and takes them in random
/// order.
PassOrder shuffledOrder(int64_t tokens, int64_t context, uint64_t seed);

/// As llm.c's loader goes through files of tokens, which end at `ends`: each is cut into windows of `rows` sequences,
/// one behind the other; a pass takes the files in random order, and of each all windows in random order. Throws Error
/// for a file that is too short for a window and the token behind it.
PassOrder llmcOrder(std::vector<int64_t> ends, int64_t context, int64_t rows);

class TrainBatches {
public:
  TrainBatches(std::shared_ptr<const TokenStream> text, int64_t context, PassOrder order);

  /// Sequences `first` … `first + count` of the endless stream.
  Batch sequences(int64_t first, int64_t count);
  /// Sequences that one pass over the text takes.
  int64_t sequencesPerPass() const { return order.sequences; }

private:
  std::shared_ptr<const TokenStream> text;
  int64_t context;
  PassOrder order;
  int64_t drawn = -1;          // pass that `begins` belongs to
  std::vector<int64_t> begins; // first token of each sequence of that pass
};

/// The sequences of a validation text, one after the other. The last one may be short: its missing targets are
/// `ignoredTarget`, so that a loss summed over all sequences counts every token but the first once.
inline constexpr int32_t ignoredTarget = -1;
int64_t validationSequences(int64_t tokens, int64_t context);
Batch validationBatch(const TokenStream &text, int64_t context, int64_t first, int64_t count);

} // namespace kiln
