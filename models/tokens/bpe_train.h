// BPE training as in Sennrich, Haddow & Birch, with the choices of Hugging Face's `tokenizers`: of pairs with equal
// counts, the one of smaller tokens is merged first.

#pragma once

#include "models/tokens/piece_counts.h"

namespace kiln {

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
