// Documents of a stream of tokens, each alone in its sequence: no text is seen behind another one, and what is shorter
// than a sequence is padded.

#pragma once

#include "models/data/batches.h"

namespace kiln {

/// Where the sequences of a stream's documents begin. A document begins with `mark`, and ends where the next one
/// begins, whose mark is the last token to predict. One that is longer than `context` is cut into several sequences.
class Documents {
public:
  /// Throws Error where no token is `mark`: then `path` has no documents.
  Documents(std::shared_ptr<const TokenStream> stream, int32_t mark, int64_t context, const std::string &path);

  int64_t sequences() const { return std::ssize(begins); }
  /// Targets of a sequence, 1 to the context.
  int64_t targets(int64_t sequence) const { return lengths[sequence]; }
  /// Puts a sequence into row `row` of a batch whose rows are made for it.
  void read(int64_t sequence, Batch &batch, int64_t row) const;
  /// A batch of so many rows of padding.
  Batch padding(int64_t rows) const;

private:
  std::shared_ptr<const TokenStream> stream;
  int64_t context;
  std::vector<int64_t> begins;  // first token
  std::vector<int32_t> lengths; // targets
};

/// Documents in random order, each once in a pass. Sequence number n is a function of seed and n alone.
class DocumentBatches {
public:
  DocumentBatches(std::shared_ptr<const Documents> documents, uint64_t seed);

  Batch sequences(int64_t first, int64_t count);
  /// The targets that these have together.
  int64_t targets(int64_t first, int64_t count);

private:
  /// The document's sequence that is number n.
  int64_t at(int64_t n);

  std::shared_ptr<const Documents> documents;
  Random random;
  int64_t drawn = -1; // pass that `order` belongs to
  std::vector<int64_t> order;
};

} // namespace kiln
