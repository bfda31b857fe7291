// Converts text to tokens and back. There are three styles: byte-level BPE as in GPT-2 (Sennrich, Haddow & Birch 2016,
// on bytes), which is lossless for any bytes; BPE on the characters of lower-case words; whole words.
//
//     const Tokenizer tokenizer(readVocabulary("gpt2-folder"));
//     const std::vector<int32_t> ids = tokenizer.encode("To be, or not");
//     const std::string text = tokenizer.decode(ids);

#pragma once

#include "models/tokens/split.h"
#include "models/tokens/token_tables.h"

#include <map>
#include <span>

namespace kiln {

class Tokenizer {
public:
  /// Throws Error for an invalid vocabulary (verify) or expression.
  explicit Tokenizer(Vocabulary vocabulary);

  const Vocabulary &vocabulary() const { return words; }
  int64_t size() const { return words.size(); }

  /// The tokens of a text, or of any bytes. With `specials`, names of special tokens become these tokens; without, they
  /// are ordinary text. Thread-safe.
  std::vector<int32_t> encode(std::string_view text, bool specials = false) const;
  /// As above with several threads, if the expression lets a text be cut.
  std::vector<int32_t> encode(std::string_view text, bool specials, int threads) const;
  /// The bytes of tokens; words have a space after each. Throws Error for a number that is no token.
  std::string decode(std::span<const int32_t> ids) const;

private:
  class Encoding;
  /// Calls `take` for text between special tokens, and `special` for these.
  void walk(std::string_view text, bool specials, const std::function<void(std::string_view)> &take,
            const std::function<void(int32_t)> &special) const;

  Vocabulary words;
  Splitter splitter;
  std::vector<int32_t> bytes;                             // the token of each
  std::map<std::string, int32_t, std::less<>> characters; // of words: the token of each character
  int32_t unknown = -1;                                   // of words: the token <unk>
  MergeTable merges;
  std::vector<std::pair<std::string, int32_t>> whole; // tokens by their bytes, sorted; for whole pieces and words
};

} // namespace kiln
