// The data of a tokenizer, as in its files: the bytes of every token, the merges by rank, and the expression that cuts
// a text into pieces. Each piece is tokenized separately.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// Two tokens that become one. Of all adjacent pairs in a piece, the one of lowest rank is merged first.
struct Merge {
  int32_t left, right, result;
  bool operator==(const Merge &) const = default;
};

/// How a text is cut, and the units of its tokens.
enum class TokenStyle {
  bytes,     // pieces by an expression; pairs of bytes; lossless for any bytes
  words,     // lower-case words between spaces; pairs of characters, and an end of each word (models/tokens/split.h)
  wholeWords // lower-case words, each a token
};

struct Vocabulary {
  TokenStyle style = TokenStyle::bytes;
  std::vector<std::string> tokens;         // the bytes of each, by id; empty for an unused id
  std::vector<Merge> merges;               // by rank
  std::map<std::string, int32_t> specials; // such as <|endoftext|>: never made by merges
  std::string split;                       // the expression of style bytes; empty: a text is one piece
  bool wholePieces = false;                // a piece that is a token is never merged

  /// Bound of the ids.
  int64_t size() const { return std::ssize(tokens); }
  /// Whether both tokenize every text alike. Merges and specials follow from the tokens.
  bool operator==(const Vocabulary &) const = default;
};

/// The token of each byte. Throws Error if one is missing.
std::vector<int32_t> byteTokens(const Vocabulary &vocabulary);
/// Throws Error unless merges join tokens into their concatenation, and specials are tokens. Throws Error unless any
/// text can be encoded: with a token for every byte, or <unk> for words.
void verify(const Vocabulary &vocabulary);
/// The special token for unknown words and characters.
inline constexpr const char *unknownToken = "<unk>";
/// The special token at the beginning of a document: <|endoftext|>, <s>, or the only one there is.
std::optional<int32_t> documentMark(const Vocabulary &vocabulary);
/// The special token at the end of a document: </s>.
std::optional<int32_t> documentEnd(const Vocabulary &vocabulary);
/// FNV-1a of all of it.
uint64_t computeHash(const Vocabulary &vocabulary);

/// One token a byte, with no merges.
Vocabulary byteVocabulary();
/// The 256 bytes in the order of GPT-2's vocabulary: visible ones first.
const std::vector<uint8_t> &bytesInOrder();

/// GPT-2's representation of bytes as letters, so that a token is one word of JSON or of a line. Visible bytes are
/// themselves, others are letters from U+0100 on.
std::string bytesToLetters(std::string_view bytes);
/// Converts letters back to bytes; false if a letter stands for none.
bool lettersToBytes(std::string_view letters, std::string &bytes);

/// Expressions by name: gpt2, gpt4, llama3.
const std::map<std::string, std::string> &namedSplits();
/// Whether a text that is cut so may be split at lines first (models/tokens/split.h): all except other expressions.
bool splitsAtLines(TokenStyle style, const std::string &expression);

} // namespace kiln
