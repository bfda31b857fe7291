// Training of tokenizers: counts of the pieces of texts, and BPE.

#pragma once

#include "models/tokens/vocabulary.h"

#include <functional>
#include <unordered_map>

namespace kiln {

//===-- Counts --------------------------------------------------------------------------------------------------===//
// Counts of the pieces of texts, the input of BPE training.

/// The regular expression of a name of namedSplits(); another text is an expression itself.
std::string splitExpression(const std::string &split);

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

//===-- Training ------------------------------------------------------------------------------------------------===//
// BPE training as in Sennrich, Haddow & Birch, with the choices of Hugging Face's `tokenizers`. Of pairs with equal
// counts, the one of smaller tokens is merged first.

struct BpeSettings {
  int64_t merges = 30000;                 // at most
  int64_t words = 30000;                  // for style wholeWords, at most
  int64_t leastCount = 2;                 // of a merged pair, or of a whole word
  std::string split = "gpt2";             // of style bytes: a name of namedSplits(), or an expression
  std::vector<std::string> specials = {}; // numbered after all other tokens
};

/// The vocabulary of the counted texts, in their style. Bytes: the 256 bytes, the merges and the special tokens. Words:
/// <pad>, the characters in code point order and the end of a word, the merges, then <s>, </s> and <unk>. Whole words:
/// <pad>, the words by decreasing count, then the same three. It does not depend on the number of threads.
Vocabulary trainBpe(const PieceCounts &counts, const BpeSettings &settings);

} // namespace kiln
