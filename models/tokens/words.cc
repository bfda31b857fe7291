// Lower case by utf8proc, except two special cases: İ, which becomes two characters, and Σ, which becomes ς at the end
// of a word (Unicode 14, section 3.13).

#include "models/tokens/words.h"
#include "models/tokens/split.h"

#include <algorithm>
#include <utf8proc.h>

namespace kiln {

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

/// Converts each Σ of the word to lower case: ς after a cased letter and not before one, ignoring case-ignorable
/// characters such as marks; otherwise σ.
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

} // namespace kiln
