// Counts of the pieces of texts, the input of BPE training.

#pragma once

#include "models/tokens/vocabulary.h"

#include <functional>
#include <unordered_map>

namespace kiln {

/// The regular expression of a name of namedSplits(); another text is an expression itself.
std::string expressionOf(const std::string &split);

class PieceCounts {
public:
  /// Pieces cut by an expression, or by its name.
  explicit PieceCounts(const std::string &split) : PieceCounts(TokenStyle::bytes, split) {}
  /// Lower-case words, for the styles of words, which have no `split`.
  PieceCounts(TokenStyle style, const std::string &split);
  /// Adds a text's pieces.
  void add(std::string_view text, int threads);

  TokenStyle style() const { return kind; }
  std::vector<std::pair<std::string, int64_t>> sorted() const; // in the order of the pieces
  int64_t different() const { return std::ssize(counts); }

private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view piece) const;
  };
  using Counts = std::unordered_map<std::string, int64_t, Hash, std::equal_to<>>;

  TokenStyle kind;
  std::string split;
  Counts counts;
};

} // namespace kiln
