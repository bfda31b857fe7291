// Learning merges from texts, as Sennrich, Haddow & Birch describe it, and with the choices of Hugging Face's
// `tokenizers`: of pairs that occur equally often the one of smaller tokens is merged first.

#pragma once

#include "models/tokens/vocabulary.h"

#include <functional>

namespace kiln {

struct BpeSettings {
  int64_t merges = 30000;                 // at most
  int64_t leastCount = 2;                 // of a pair that is merged
  std::string split = "gpt2";             // a name of namedSplits(), or an expression
  std::vector<std::string> specials = {}; // their numbers follow those of the merges
};

/// How often each piece occurs.
class PieceCounts {
public:
  explicit PieceCounts(const std::string &split);
  /// Adds a text's pieces.
  void add(std::string_view text, int threads);

  std::vector<std::pair<std::string, int64_t>> sorted() const; // by piece
  int64_t different() const { return std::ssize(counts); }

private:
  std::string split;
  std::map<std::string, int64_t, std::less<>> counts;
};

/// The vocabulary of the 256 bytes, the merges and the special tokens. Its merges depend on the texts alone, and not on
/// the threads.
Vocabulary trainBpe(const PieceCounts &counts, const BpeSettings &settings);

} // namespace kiln
