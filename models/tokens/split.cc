// Cuts a text by a regular expression, or at white space, and works on its parts in parallel.

#include "models/tokens/split.h"
#include "dialect/dsl/Types.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <algorithm>
#include <atomic>
#include <exception>
#include <fmt/format.h>
#include <mutex>
#include <pcre2.h>
#include <thread>
#include <utf8proc.h>
#include <vector>

namespace kiln {

//===-- Words ---------------------------------------------------------------------------------------------------===//
// Lower case by utf8proc, except two special cases (Unicode 14, section 3.13): İ becomes two characters, and Σ becomes
// ς at the end of a word.

static constexpr int32_t dottedI = 0x130, sigma = 0x3a3, replacement = 0xfffd;
static constexpr std::string_view sigmaText = "\u03a3";

/// As Python's str.isspace().
static bool isSpace(int32_t c) {
  static constexpr int32_t others[] = {0x20, 0x85, 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000};
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x1f) || (c >= 0x2000 && c <= 0x200a) ||
         std::find(std::begin(others), std::end(others), c) != std::end(others);
}

static void append(std::string &word, int32_t c) {
  utf8proc_uint8_t bytes[4];
  word.append(reinterpret_cast<const char *>(bytes), utf8proc_encode_char(c, bytes));
}

/// Converts each Σ of the word to lower case. It becomes ς after a cased letter and not before one; case-ignorable
/// characters such as marks do not count. Otherwise it becomes σ.
static std::string withSigmas(const std::string &word) {
  static const Splitter behindLetter(R"((?=\p{Cased})\P{Case_Ignorable}\p{Case_Ignorable}*+\z)"),
      beforeLetter(R"(\A\p{Case_Ignorable}*+\p{Cased})");
  std::string lower;
  size_t at = 0;
  for (size_t next = word.find(sigmaText); next != std::string::npos; next = word.find(sigmaText, at)) {
    const std::string_view all = word, before = all.substr(0, next), behind = all.substr(next + sigmaText.size());
    lower += word.substr(at, next - at);
    lower += behindLetter.finds(before) && !beforeLetter.finds(behind) ? "\u03c2" : "\u03c3";
    at = next + sigmaText.size();
  }
  return lower + word.substr(at);
}

void forWords(std::string_view text, const std::function<void(std::string_view)> &take, bool cased) {
  std::string word;
  bool hasSigma = false;
  const auto end = [&] {
    if (hasSigma)
      take(withSigmas(word));
    else if (!word.empty())
      take(word);
    word.clear();
    hasSigma = false;
  };
  for (size_t at = 0; at < text.size();) {
    const auto byte = static_cast<uint8_t>(text[at]);
    if (byte < 0x80) {
      if (isSpace(byte))
        end();
      else
        word += static_cast<char>(!cased && byte >= 'A' && byte <= 'Z' ? byte + ('a' - 'A') : byte);
      ++at;
      continue;
    }
    utf8proc_int32_t c = 0;
    const utf8proc_ssize_t length =
        utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t *>(text.data() + at), std::ssize(text) - at, &c);
    at += std::max<utf8proc_ssize_t>(length, 1);
    if (length <= 0)
      append(word, replacement);
    else if (isSpace(c))
      end();
    else if (text.substr(at - length, length) == endOfWord)
      append(word, replacement);
    else if (cased)
      append(word, c);
    else if (c == dottedI)
      word += "i\u0307";
    else if (c == sigma) {
      word += sigmaText;
      hasSigma = true;
    } else
      append(word, utf8proc_tolower(c));
  }
  end();
}

size_t characterAt(std::string_view text, size_t at) {
  size_t length = 1;
  while (at + length < text.size() && (text[at + length] & 0xc0) == 0x80)
    ++length;
  return length;
}

//===-- Pieces --------------------------------------------------------------------------------------------------===//

struct Splitter::Compiled {
  explicit Compiled(pcre2_code *code) : code(code) {}
  ~Compiled() { pcre2_code_free(code); }
  Compiled(const Compiled &) = delete;
  pcre2_code *const code;
};

static std::string errorText(int error) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(error, buffer, sizeof(buffer));
  return reinterpret_cast<const char *>(buffer);
}

/// Unicode's white space. PCRE2's \s includes U+180E, which has not been white space since Unicode 6.3.
static constexpr const char *spaces =
    R"(\x09-\x0d\x20\x85\xa0\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

/// The expression with \s and \S replaced by explicit character classes.
static std::string spelt(const std::string &expression) {
  std::string all;
  bool inClass = false;
  for (size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    if (c == '\\' && i + 1 < expression.size()) {
      const char next = expression[++i];
      if (next == 's')
        all += inClass ? spaces : fmt::format("[{}]", spaces);
      else if (next == 'S' && !inClass)
        all += fmt::format("[^{}]", spaces);
      else
        all += {c, next};
      continue;
    }
    inClass = inClass ? c != ']' : c == '[';
    all += c;
  }
  return all;
}

Splitter::Splitter(const std::string &expression) {
  if (expression.empty())
    return;
  const std::string whole = spelt(expression);
  int error = 0;
  PCRE2_SIZE at = 0;
  pcre2_code *code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(whole.data()), whole.size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &at, nullptr);
  if (!code)
    throw Error(fmt::format("expected a regular expression that splits a text, but got '{}': {}", expression,
                            errorText(error)));
  compiled = std::make_shared<Compiled>(code);
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); // may fail; matching is slower then
}

size_t validUtf8(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : 0; };
  const auto follows = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  while (at < text.size()) {
    const unsigned first = byte(at), second = byte(at + 1);
    if (first < 0x80)
      ++at;
    else if (first >= 0xc2 && first <= 0xdf && follows(at + 1))
      at += 2;
    else if (first >= 0xe0 && first <= 0xef && follows(at + 1) && follows(at + 2) &&
             !(first == 0xe0 && second < 0xa0) &&
             !(first == 0xed && second >= 0xa0)) // neither overlong nor a surrogate
      at += 3;
    else if (first >= 0xf0 && first <= 0xf4 && follows(at + 1) && follows(at + 2) && follows(at + 3) &&
             !(first == 0xf0 && second < 0x90) && !(first == 0xf4 && second >= 0x90))
      at += 4;
    else
      break;
  }
  return at;
}

/// The pieces of a UTF-8 text.
static void splitValid(pcre2_code *code, pcre2_match_data *found, std::string_view text,
                       const std::function<void(std::string_view)> &take) {
  const PCRE2_SIZE *const ends = pcre2_get_ovector_pointer(found);
  size_t at = 0, from = 0; // begin of the next piece, and begin of the search
  while (from < text.size()) {
    const int result = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                                   PCRE2_NO_UTF_CHECK, found, nullptr);
    if (result == PCRE2_ERROR_NOMATCH)
      break;
    if (result < 0)
      throw Error(fmt::format("cannot cut a text of {} bytes into pieces: {}", text.size(), errorText(result)));
    if (ends[1] <= ends[0]) { // an empty match: search from the next character
      from = ends[0] + 1;
      while (from < text.size() && (text[from] & 0xc0) == 0x80)
        ++from;
      continue;
    }
    if (ends[0] > at)
      take(text.substr(at, ends[0] - at));
    take(text.substr(ends[0], ends[1] - ends[0]));
    at = from = ends[1];
  }
  if (at < text.size())
    take(text.substr(at));
}

using MatchData = std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data *)>;
static MatchData makeMatchData(const pcre2_code *code) {
  return {pcre2_match_data_create_from_pattern(code, nullptr), pcre2_match_data_free};
}

bool Splitter::finds(std::string_view text) const {
  return !compiled || pcre2_match(compiled->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0,
                                  PCRE2_NO_UTF_CHECK, makeMatchData(compiled->code).get(), nullptr) >= 0;
}

void Splitter::split(std::string_view text, const std::function<void(std::string_view)> &take) const {
  if (!compiled) {
    if (!text.empty())
      take(text);
    return;
  }
  const MatchData found = makeMatchData(compiled->code);
  for (size_t at = 0; at < text.size();) {
    const size_t valid = validUtf8(text, at);
    splitValid(compiled->code, found.get(), text.substr(at, valid - at), take);
    size_t next = valid; // after the bytes that are not UTF-8
    while (next < text.size() && validUtf8(text, next) == next)
      ++next;
    if (next > valid)
      take(text.substr(valid, next - valid));
    at = next;
  }
}

std::vector<std::string_view> partsAtLines(std::string_view text, size_t bytes) {
  const auto isVisible = [](char c) { return c > ' ' && c < 0x7f; };
  std::vector<std::string_view> parts;
  size_t begin = 0;
  for (size_t at = begin + bytes; at + 1 < text.size(); ++at) {
    at = text.find('\n', at);
    if (at == std::string_view::npos || at + 1 >= text.size())
      break;
    if (at == 0 || !isVisible(text[at - 1]) || !isVisible(text[at + 1]))
      continue;
    parts.push_back(text.substr(begin, at + 1 - begin));
    begin = at + 1;
    at = begin + bytes - 1;
  }
  if (begin < text.size())
    parts.push_back(text.substr(begin));
  return parts;
}

//===-- Threads -------------------------------------------------------------------------------------------------===//

void workTogether(int threads, size_t count, const std::function<std::function<void(size_t)>()> &worker) {
  std::atomic<size_t> taken = 0;
  std::mutex lock;
  std::exception_ptr failed;
  const auto work = [&] {
    try {
      const std::function<void(size_t)> one = worker();
      for (size_t i = taken++; i < count; i = taken++)
        one(i);
    } catch (...) {
      const std::scoped_lock held(lock);
      failed = std::current_exception();
      taken = count;
    }
  };
  {
    std::vector<std::jthread> others;
    for (size_t i = 1; i < std::min<size_t>(threads, count); ++i)
      others.emplace_back(work);
    work();
  }
  if (failed)
    std::rethrow_exception(failed);
}

} // namespace kiln
