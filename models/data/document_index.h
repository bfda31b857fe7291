// Where the documents of a stream of tokens are. Looking through a long stream takes its time; what was found is kept
// in a file.

#pragma once

#include "models/data/token_stream.h"

#include <optional>
#include <string>

namespace kiln {

/// The tokens that documents begin and end with.
struct DocumentMarks {
  int32_t begin = 0;
  std::optional<int32_t> end = {}; // none: the next document's first token is what a document's last one predicts
};

/// A document: `targets` tokens from `begin` on, each of which predicts the one behind it.
struct DocumentPlace {
  int64_t begin = 0, targets = 0;
  bool operator==(const DocumentPlace &) const = default;
};

/// The documents of a stream, those without targets left out. Throws Error where there are none, in `where`.
std::vector<DocumentPlace> findDocuments(const TokenStream &stream, const DocumentMarks &marks,
                                         const std::string &where);

/// The same from the file `index`, when that was written for these marks and for a stream of this size and `hash`; else
/// they are looked for, and the file is written.
std::vector<DocumentPlace> documentsOf(const TokenStream &stream, const DocumentMarks &marks, const std::string &where,
                                       const std::string &index, uint64_t hash);

} // namespace kiln
