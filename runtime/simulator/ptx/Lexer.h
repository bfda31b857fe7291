// The words of PTX text.
//
// `ld.global.v4.b32` is one word `ld` and three suffixes; `.reg` at the start of a statement is a suffix, too; a suffix
// may begin with a digit (`.2d`) and have parts (`.shared::cta`, `.cta_group::1`). Numbers keep their bits:
// `0f3F800000` is an f32, `0d…` an f64, others are integers or decimal floats. Comments are passed over.

#pragma once

#include <cstdint>
#include <string_view>

namespace kiln::ptx {

struct Token {
  enum class Kind : uint8_t { word, suffix, integer, single, real, text, mark, end };
  Kind kind = Kind::end;
  std::string_view text; // of a suffix without its dot, of a text without its quotes
  uint64_t bits = 0;     // of a number: an integer, or the bits of an f32 (single) or an f64 (real)
  int line = 1;

  bool is(char mark) const { return kind == Kind::mark && text[0] == mark; }
  bool isWord(std::string_view word) const { return kind == Kind::word && text == word; }
  bool isSuffix(std::string_view suffix) const { return kind == Kind::suffix && text == suffix; }
};

/// Cuts a text, which must outlive the tokens, into tokens one at a time. Throws Error for a character or number that
/// PTX does not have.
class Lexer {
public:
  explicit Lexer(std::string_view text) : text(text) {}
  Token next();
  int line() const { return lineNumber; }
  /// Passes over everything up to and including the `}` that closes the `{` just read.
  void skipBraces();

private:
  void skipSpace();
  Token number(Token token);
  bool at(size_t place, char c) const { return place < text.size() && text[place] == c; }

  std::string_view text;
  size_t place = 0;
  int lineNumber = 1;
};

} // namespace kiln::ptx
