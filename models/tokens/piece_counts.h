// How often the pieces of texts occur, which is all that learning a vocabulary needs of them.

#pragma once

#include "models/tokens/vocabulary.h"

#include <functional>
#include <unordered_map>

namespace kiln {

/// The expression that a name of namedSplits() stands for; another text is one itself.
std::string expressionOf(const std::string &split);

class PieceCounts {
public:
  /// Of pieces cut by an expression, or its name.
  explicit PieceCounts(const std::string &split) : PieceCounts(TokenStyle::bytes, split) {}
  /// Of words in lower case, for styles of words, of which `split` is none.
  PieceCounts(TokenStyle style, const std::string &split);
  /// Adds a text's pieces.
  void add(std::string_view text, int threads);

  TokenStyle style() const { return kind; }
  std::vector<std::pair<std::string, int64_t>> sorted() const; // by piece
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
