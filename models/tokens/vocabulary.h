// What a tokenizer is made of, as its files say it: the bytes of every token, the pairs that are merged, in the order
// of their ranks, and the expression that cuts a text into the pieces which are tokenized one by one.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// Two tokens that become one. Of all pairs that stand side by side in a piece the one of the lowest rank is merged
/// first.
struct Merge {
  int32_t left, right, result;
  bool operator==(const Merge &) const = default;
};

/// What a text is cut into, and what its tokens are made of.
enum class TokenStyle {
  bytes,     // pieces by an expression; pairs of bytes: any bytes come back as they were
  words,     // lower-case words between spaces; pairs of characters, and an end of each word (models/tokens/words.h)
  wholeWords // the same words, each a token
};

struct Vocabulary {
  TokenStyle style = TokenStyle::bytes;
  std::vector<std::string> tokens;         // the bytes of each, by id; empty where an id is none
  std::vector<Merge> merges;               // by rank
  std::map<std::string, int32_t> specials; // such as <|endoftext|>: whole, never made by merges
  std::string split;                       // the expression of style bytes; empty: a text is one piece
  bool wholePieces = false;                // a piece that is a token is not merged at all

  /// Ids, which are below this number.
  int64_t size() const { return std::ssize(tokens); }
  /// Whether both are the same to every text. What merges and specials say follows from the tokens.
  bool operator==(const Vocabulary &) const = default;
};

/// The token of each byte. Throws Error where the vocabulary has none.
std::vector<int32_t> byteTokens(const Vocabulary &vocabulary);
/// Throws Error unless merges are of tokens and make what their parts are, specials are tokens, and there is what any
/// text needs: a token for every byte; of words one for what is in no vocabulary.
void verify(const Vocabulary &vocabulary);
/// The special token for words and characters that are no tokens.
inline constexpr const char *unknownToken = "<unk>";
/// The special token that begins a document: <|endoftext|>, <s>, or the only one there is.
std::optional<int32_t> documentMark(const Vocabulary &vocabulary);
/// The special token that ends one: </s>.
std::optional<int32_t> documentEnd(const Vocabulary &vocabulary);
/// FNV-1a of all of it, which tells one vocabulary from another.
uint64_t hashOf(const Vocabulary &vocabulary);

/// One token a byte, with no merges.
Vocabulary byteVocabulary();
/// The 256 bytes in the order of GPT-2's vocabulary: those that can be seen, then the others.
const std::vector<uint8_t> &bytesInOrder();

/// GPT-2's way to write bytes as letters, so that a token is a word of JSON and of a line: those that can be seen are
/// themselves, the others letters from U+0100 on.
std::string lettersOf(std::string_view bytes);
/// The bytes again; nothing where a letter stands for none.
bool bytesOf(std::string_view letters, std::string &bytes);

/// Expressions by name: gpt2, gpt4, llama3.
const std::map<std::string, std::string> &namedSplits();

} // namespace kiln
