// The documents of a token stream. Searching a long stream takes time, so the result is kept in a file.

#pragma once

#include "models/data/token_stream.h"

#include <optional>
#include <string>

namespace kiln {

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
std::vector<DocumentPlace> documentsOf(const TokenStream &stream, const DocumentMarks &marks, const std::string &where,
                                       const std::string &index, uint64_t hash);

} // namespace kiln
