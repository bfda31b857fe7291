// Documents of a stream of tokens as the rows of batches: each alone in its row, or several packed into one. No text is
// seen behind another one: what is shorter than a row is padded, and packed ones say what each place may see.

#pragma once

#include "models/data/batches.h"
#include "models/data/document_index.h"

namespace kiln {

/// How documents share rows.
struct Packing {
  /// A row takes one document more while less than this share of it is full; 0: each is alone.
  double share = 0;
  /// Draws the order in which they are packed; none: that of the stream.
  std::optional<uint64_t> seed = {};
};

/// The rows, each once, in a fixed order. A document that does not fit what is left of a row is cut, and goes on in the
/// next one, so that every target is in one row.
class Documents {
public:
  Documents(std::shared_ptr<const TokenStream> stream, const std::vector<DocumentPlace> &places, int64_t context,
            const Packing &packing = {});

  int64_t sequences() const { return std::ssize(firstPart) - 1; }
  /// Targets of a row, 1 to the context.
  int64_t targets(int64_t sequence) const;
  /// Puts a row into row `row` of a batch whose rows are made for it.
  void read(int64_t sequence, Batch &batch, int64_t row) const;
  /// A batch of so many rows of padding, with positions and ranges where documents are packed.
  Batch padding(int64_t rows) const;

private:
  void place(const std::vector<DocumentPlace> &places, const std::vector<int64_t> &order, double share);

  std::shared_ptr<const TokenStream> stream;
  int64_t context;
  bool isPacked;
  std::vector<DocumentPlace> parts; // of documents, in the order of the rows
  std::vector<int64_t> firstPart;   // of each row, and behind the last one
};

/// Rows in random order, each once in a pass. Row number n is a function of seed and n alone.
class DocumentBatches {
public:
  DocumentBatches(std::shared_ptr<const Documents> documents, uint64_t seed);

  Batch sequences(int64_t first, int64_t count);
  /// The targets that these have together.
  int64_t targets(int64_t first, int64_t count);

private:
  /// The row that is number n.
  int64_t at(int64_t n);

  std::shared_ptr<const Documents> documents;
  Random random;
  int64_t drawn = -1; // pass that `order` belongs to
  std::vector<int64_t> order;
};

} // namespace kiln
