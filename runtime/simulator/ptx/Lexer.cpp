// One pass over the characters.

#include "runtime/simulator/ptx/OperandParser.h"

#include "dialect/dsl/Types.h"

#include <array>
#include <bit>
#include <charconv>
#include <fmt/format.h>

namespace kiln::ptx {

namespace {
enum Class : uint8_t { other, letter, digit };

constexpr std::array<Class, 256> classify() {
  std::array<Class, 256> classes{};
  for (int c = 'a'; c <= 'z'; ++c)
    classes[c] = classes[c - 'a' + 'A'] = letter;
  for (const char c : {'_', '$', '%'})
    classes[static_cast<unsigned char>(c)] = letter;
  for (int c = '0'; c <= '9'; ++c)
    classes[c] = digit;
  return classes;
}
} // namespace

static constexpr std::array<Class, 256> classes = classify();

static bool isNamePart(char c) { return classes[static_cast<unsigned char>(c)] != other; }

[[noreturn]] static void fail(int line, const std::string &message) {
  throw Error(fmt::format("PTX line {}: {}", line, message));
}

void Lexer::skipSpace() {
  while (place < text.size()) {
    const char c = text[place];
    if (c == '\n') {
      ++lineNumber;
      ++place;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++place;
    } else if (c == '/' && at(place + 1, '/')) {
      place = std::min(text.find('\n', place), text.size());
    } else if (c == '/' && at(place + 1, '*')) {
      const size_t close = text.find("*/", place + 2);
      if (close == std::string_view::npos)
        fail(lineNumber, "expected '*/' to close the comment, but the text ends");
      for (; place < close + 2; ++place)
        lineNumber += text[place] == '\n';
    } else {
      return;
    }
  }
}

Token Lexer::next() {
  skipSpace();
  Token token;
  token.line = lineNumber;
  if (place >= text.size())
    return token;
  const size_t begin = place;
  const char c = text[place];
  if (classes[static_cast<unsigned char>(c)] == letter) {
    while (place < text.size() && isNamePart(text[place]))
      ++place;
    token.kind = Token::Kind::word;
    token.text = text.substr(begin, place - begin);
    return token;
  }
  if (classes[static_cast<unsigned char>(c)] == digit)
    return number(token);
  if (c == '.' && place + 1 < text.size() && isNamePart(text[place + 1])) {
    for (++place; place < text.size(); place += text[place] == ':' ? 2 : 1)
      if (!isNamePart(text[place]) && !(at(place, ':') && at(place + 1, ':')))
        break;
    token.kind = Token::Kind::suffix;
    token.text = text.substr(begin + 1, place - begin - 1);
    return token;
  }
  if (c == '"') {
    const size_t close = text.find('"', place + 1);
    if (close == std::string_view::npos)
      fail(lineNumber, "expected '\"' to close the string, but the text ends");
    token.kind = Token::Kind::text;
    token.text = text.substr(begin + 1, close - begin - 1);
    for (; place <= close; ++place)
      lineNumber += text[place] == '\n';
    return token;
  }
  if (std::string_view("{}[]()<>,;:=+-*/@!|&~?").find(c) == std::string_view::npos)
    fail(lineNumber, fmt::format("expected PTX, but got the character '\\x{:02x}'", static_cast<unsigned char>(c)));
  ++place;
  token.kind = Token::Kind::mark;
  token.text = text.substr(begin, 1);
  return token;
}

Token Lexer::number(Token token) {
  const size_t begin = place;
  const auto digits = [&](int base, uint64_t &value) {
    const auto [stop, failure] = std::from_chars(text.data() + place, text.data() + text.size(), value, base);
    const bool good = failure == std::errc();
    place = static_cast<size_t>(stop - text.data());
    return good;
  };
  const auto wrong = [&] {
    while (place < text.size() && isNamePart(text[place]))
      ++place;
    fail(lineNumber, fmt::format("expected a number, but got '{}'", text.substr(begin, place - begin)));
  };
  const char kind = place + 1 < text.size() && text[place] == '0' ? static_cast<char>(text[place + 1] | 0x20) : '\0';
  token.kind = Token::Kind::integer;
  bool good = true;
  if (kind == 'x' || kind == 'f' || kind == 'd' || kind == 'b') {
    place += 2;
    const size_t first = place;
    good = digits(kind == 'b' ? 2 : 16, token.bits);
    if (kind == 'f' || kind == 'd') {
      token.kind = kind == 'f' ? Token::Kind::single : Token::Kind::real;
      good &= place - first == (kind == 'f' ? 8u : 16u);
    }
  } else {
    size_t stop = place;
    while (stop < text.size() && classes[static_cast<unsigned char>(text[stop])] == digit)
      ++stop;
    if (at(stop, '.') || ((at(stop, 'e') || at(stop, 'E')) && stop + 1 < text.size())) {
      double value = 0;
      const auto [end, failure] = std::from_chars(text.data() + place, text.data() + text.size(), value);
      good = failure == std::errc();
      place = static_cast<size_t>(end - text.data());
      token.kind = Token::Kind::real;
      token.bits = std::bit_cast<uint64_t>(value);
    } else {
      good = digits(text[place] == '0' && stop > place + 1 ? 8 : 10, token.bits);
    }
  }
  if (at(place, 'U'))
    ++place;
  if (!good || (place < text.size() && isNamePart(text[place])))
    wrong();
  token.text = text.substr(begin, place - begin);
  return token;
}

void Lexer::skipBraces() {
  for (int depth = 1; depth > 0;) {
    skipSpace();
    if (place >= text.size())
      fail(lineNumber, "expected '}', but the text ends");
    const char c = text[place++];
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
  }
}

} // namespace kiln::ptx
