// Learning merges from texts, as Sennrich, Haddow & Birch describe it, and with the choices of Hugging Face's
// `tokenizers`: of pairs that occur equally often the one of smaller tokens is merged first.

#pragma once

#include "models/tokens/piece_counts.h"

namespace kiln {

struct BpeSettings {
  int64_t merges = 30000;                 // at most
  int64_t words = 30000;                  // of style wholeWords, at most
  int64_t leastCount = 2;                 // of a pair that is merged, or of a whole word
  std::string split = "gpt2";             // of style bytes: a name of namedSplits(), or an expression
  std::vector<std::string> specials = {}; // their numbers follow all others
};

/// The vocabulary of the texts that were counted, in their style. Of bytes: these 256, the merges and the special
/// tokens. Of words: <pad>, the characters in the order of their code points and the end of a word, the merges, then
/// <s>, </s> and <unk>. Of whole words: <pad>, these from the most frequent on, and the same three. It depends on the
/// texts alone, and not on the threads.
Vocabulary trainBpe(const PieceCounts &counts, const BpeSettings &settings);

} // namespace kiln
