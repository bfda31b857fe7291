// Documents of a token stream: where they begin, and as rows of batches.

#pragma once

#include "models/data/batches.h"

#include <optional>
#include <string>

namespace kiln {

//===-- Places of documents -------------------------------------------------------------------------------------===//
// The documents of a token stream. Searching a long stream takes time, so the result is kept in a file.

/// The special tokens at the beginning and the end of documents.
struct DocumentMarks {
  int32_t begin = 0;
  std::optional<int32_t> end = {}; // none: the last token of a document predicts the first one of the next
};

/// A document: `targets` tokens from `begin` on, each of which predicts the next.
struct DocumentPlace {
  int64_t begin = 0, targets = 0;
  bool operator==(const DocumentPlace &) const = default;
};

/// Finds the documents of a stream, except those without targets. Throws Error, which names `where`, if there are none.
std::vector<DocumentPlace> findDocuments(const TokenStream &stream, const DocumentMarks &marks,
                                         const std::string &where);

/// Reads them from the file `index`, if that was written for these marks and for a stream of this size and `hash`.
/// Otherwise it searches and writes the file.
std::vector<DocumentPlace> locateDocuments(const TokenStream &stream, const DocumentMarks &marks,
                                           const std::string &where, const std::string &index, uint64_t hash);

//===-- Rows of documents ---------------------------------------------------------------------------------------===//
// Arranges the documents of a token stream as rows of batches. A row has one document, padded, or several packed ones,
// with the range of positions that each token sees (varlen). No document sees another.

/// How documents share rows.
struct Packing {
  /// Documents are added to a row while less than this fraction of it is full; 0: one document per row.
  double share = 0;
  /// Shuffles the documents before packing; none: the order of the stream.
  std::optional<uint64_t> seed = {};
};

/// The rows, each once, in a fixed order. A document that does not fit the rest of a row is cut and continues in the
/// next row. So every target is in one row.
class Documents {
public:
  Documents(std::shared_ptr<const TokenStream> stream, const std::vector<DocumentPlace> &places, int64_t context,
            const Packing &packing = {});

  int64_t sequences() const { return std::ssize(firstPart) - 1; }
  /// Number of targets of a row, 1 to the context.
  int64_t targets(int64_t sequence) const;
  /// Writes a row into row `row` of a batch, which must have been sized for it.
  void read(int64_t sequence, Batch &batch, int64_t row) const;
  /// A batch of padding rows, with positions and ranges if documents are packed.
  Batch padding(int64_t rows) const;

private:
  void place(const std::vector<DocumentPlace> &places, const std::vector<int64_t> &order, double share);

  std::shared_ptr<const TokenStream> stream;
  int64_t context;
  bool isPacked;
  std::vector<DocumentPlace> parts; // of documents, in the order of the rows
  std::vector<int64_t> firstPart;   // of each row, and one more for the end
};

/// Rows in random order, each once in a pass. Seed and number n determine row n.
class DocumentBatches {
public:
  DocumentBatches(std::shared_ptr<const Documents> documents, uint64_t seed);

  Batch sequences(int64_t first, int64_t count);
  /// Total number of targets of these rows.
  int64_t targets(int64_t first, int64_t count);

private:
  /// The index of row number n.
  int64_t at(int64_t n);

  std::shared_ptr<const Documents> documents;
  Random random;
  int64_t drawn = -1; // the pass of `order`
  std::vector<int64_t> order;
};

} // namespace kiln
