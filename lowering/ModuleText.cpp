// Scans the text of a module, and counts the nesting on which the parser would recurse.

#include "lowering/Driver.h"

#include "dialect/dsl/Types.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/ConvertUTF.h"

#include <algorithm>
#include <cctype>

namespace kiln::lowering {

static constexpr llvm::StringLiteral bytecodeMagic = "ML\xEFR";

namespace {
/// Reads a module word by word, as MLIR's lexer does, as far as it matters for brackets.
class Scan {
public:
  Scan(llvm::StringRef text, const std::string &path) : text(text), path(path) {}

  void run() {
    while (at < text.size()) {
      const char c = text[at];
      if (c == '\n')
        newLine();
      else if (std::isspace(static_cast<unsigned char>(c)))
        ++at;
      else if (text.substr(at).starts_with("//"))
        at = std::min(text.find('\n', at), text.size());
      else if (c == '"')
        skipString();
      else if (isWordCharacter(c))
        word();
      else
        sign(c);
    }
  }

private:
  /// An open bracket, and the number of words since it or since its last comma.
  struct Bracket {
    char open;
    int words;
  };

  [[noreturn]] void fail(const std::string &what) const {
    throw Error(path + ":" + std::to_string(line) + ": error: " + what);
  }

  static bool isWordCharacter(char c) { return llvm::isAlnum(c) || llvm::StringRef("_.$#%@!^").contains(c); }

  void newLine() {
    // An alias ends with its line, unless a bracket is open or the line ends with `=`, `:` or `->`.
    const llvm::StringRef before = text.take_front(at).rtrim(" \t\r");
    if (brackets.empty() && !before.ends_with("=") && !before.ends_with(":") && !before.ends_with("->"))
      endAlias();
    ++line;
    ++at;
  }

  void skipString() {
    count(0);
    lastWord = "";
    lastCharacter = '"';
    for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at)
      if (text[at] == '\\' && at + 1 < text.size() && text[at + 1] != '\n')
        ++at;
    if (at < text.size() && text[at] == '"')
      ++at;
  }

  void word() {
    const size_t begin = at;
    while (at < text.size() && isWordCharacter(text[at]))
      ++at;
    const llvm::StringRef word = text.slice(begin, at);
    const bool sigil = word.front() == '#' || word.front() == '!';
    if (sigil && brackets.empty() && text.substr(at).ltrim().starts_with("=")) {
      endAlias();
      alias = word;
      at = text.find('=', at); // on this line or a later one
      line += static_cast<int>(text.slice(begin, at).count('\n'));
      lastCharacter = '=';
      return;
    }
    // The parser reads the width of the type without checking that it has one.
    if (lastWord == "array" && lastCharacter == '<' && (word == "index" || word.front() == '!'))
      fail("expected an array of numbers with a width, such as 'array<i64: 0>', but got 'array<" + word.str() + "'");
    count(sigil ? depthOf.lookup(word) : 0);
    lastWord = word;
    lastCharacter = word.back();
  }

  void sign(char c) {
    const char next = at + 1 < text.size() ? text[at + 1] : '\0';
    const bool opens = llvm::StringRef("([{").contains(c) || (c == '<' && next != '=');
    const bool closes = llvm::StringRef(")]}").contains(c) || (c == '>' && lastCharacter != '-' && next != '=');
    if (opens)
      open(c);
    else if (closes)
      close(c);
    else if (c != ',')
      count(0);
    else if (!brackets.empty())
      brackets.back().words = 0;
    if (c != '<')
      lastWord = "";
    lastCharacter = c;
    ++at;
  }

  void open(char c) {
    brackets.push_back({c, 0});
    count(0);
  }

  /// Closes the last bracket of its kind. Unclosed brackets in it are left to the parser's errors.
  void close(char c) {
    const char wanted = c == ')' ? '(' : c == ']' ? '[' : c == '}' ? '{' : '<';
    for (size_t i = brackets.size(); i-- > 0;) {
      if (brackets[i].open == wanted)
        return brackets.truncate(i);
      if (wanted == '<')
        return;
    }
  }

  /// Counts a word whose meaning has the nesting `inner`.
  void count(int inner) {
    const int depth = static_cast<int>(brackets.size()) + inner;
    deepest = std::max(deepest, depth);
    if (depth > maxNesting)
      fail("expected at most " + std::to_string(maxNesting) +
           " brackets within each other, counted through aliases, but got more");
    if (brackets.empty() || brackets.back().open == '{')
      return;
    if (++brackets.back().words > maxWords)
      fail("expected at most " + std::to_string(maxWords) + " words and signs without a comma, but got more");
  }

  void endAlias() {
    if (!alias.empty())
      depthOf[alias] = deepest + 1;
    alias = "";
    deepest = 0;
  }

  const llvm::StringRef text;
  const std::string &path;
  size_t at = 0;
  int line = 1;
  llvm::SmallVector<Bracket> brackets;
  llvm::StringRef lastWord; // the word before `<`, if that was the last character
  char lastCharacter = '\n';
  llvm::StringRef alias; // the alias that is being defined
  int deepest = 0;       // its deepest nesting
  llvm::StringMap<int> depthOf;
};
} // namespace

static int lineOf(llvm::StringRef text, size_t place) {
  return 1 + static_cast<int>(text.take_front(place).count('\n'));
}

/// The first byte that is not text: zero, or invalid UTF-8.
static size_t firstStrangeByte(llvm::StringRef text) {
  const auto *const begin = reinterpret_cast<const llvm::UTF8 *>(text.data());
  const llvm::UTF8 *stop = begin;
  llvm::isLegalUTF8String(&stop, begin + text.size());
  return std::min<size_t>(text.find('\0'), stop - begin);
}

void checkModuleText(llvm::StringRef text, const std::string &path) {
  if (text.starts_with(bytecodeMagic))
    throw Error(path + ": error: expected a module as text, but got MLIR's bytecode");
  if (static_cast<int64_t>(text.size()) > maxModuleBytes)
    throw Error(path + ": error: expected a module of at most " + std::to_string(maxModuleBytes >> 20) +
                " MiB, but got " + std::to_string(text.size()) + " bytes");
  if (const size_t place = firstStrangeByte(text); place < text.size())
    throw Error(path + ":" + std::to_string(lineOf(text, place)) +
                ": error: expected text in UTF-8, but got the byte 0x" +
                llvm::utohexstr(static_cast<unsigned char>(text[place]), /*LowerCase=*/true, /*Width=*/2));
  Scan(text, path).run();
}

} // namespace kiln::lowering
