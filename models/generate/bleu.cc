// Tokenises lines as mteval-v13a does, and counts n-grams.

#include "models/generate/bleu.h"
#include "dialect/dsl/Types.h"
#include "models/tokens/split.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

namespace kiln {

static void replaceAll(std::string &text, const std::string &what, const std::string &with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

static bool isDigit(char c) { return c >= '0' && c <= '9'; }

/// Whether mteval-v13a always separates this character: ASCII punctuation except ' , - .
static bool isApart(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') ||
         (c >= ':' && c <= '@') || c == '/';
}

/// A line after mteval-v13a's regular expressions, applied in order.
static std::string separated(std::string line) {
  replaceAll(line, "<skipped>", "");
  replaceAll(line, "-\n", "");
  replaceAll(line, "\n", " ");
  if (line.find('&') != std::string::npos)
    for (const auto &[name, letter] : {std::pair("&quot;", "\""), {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}})
      replaceAll(line, name, letter);
  // 1. Separate punctuation.
  std::string apart;
  for (const char c : " " + line + " ")
    isApart(c) ? apart += std::string(" ") + c + " " : apart += c;
  // 2. Separate a full stop or comma after a non-digit, 3. and before one, 4. and a dash after a digit. A match
  // consumes both characters, so the second is not the first of another match.
  const auto pairs = [](const std::string &text, const auto &matches, const auto &with) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i)
      if (i + 1 < text.size() && matches(text[i], text[i + 1])) {
        out += with(text[i], text[i + 1]);
        ++i;
      } else {
        out += text[i];
      }
    return out;
  };
  const auto isPoint = [](char c) { return c == '.' || c == ','; };
  apart = pairs(
      apart, [&](char a, char b) { return !isDigit(a) && isPoint(b); },
      [](char a, char b) { return std::string{a, ' ', b, ' '}; });
  apart = pairs(
      apart, [&](char a, char b) { return isPoint(a) && !isDigit(b); },
      [](char a, char b) { return std::string{' ', a, ' ', b}; });
  return pairs(
      apart, [](char a, char b) { return isDigit(a) && b == '-'; },
      [](char a, char b) { return std::string{a, ' ', b, ' '}; });
}

std::vector<std::string> bleuWords(const std::string &line, const BleuOptions &options) {
  std::vector<std::string> words;
  forWords(
      options.words == BleuWords::v13a ? separated(line) : line,
      [&](std::string_view word) { words.emplace_back(word); },
      /*cased=*/!options.lowerCase);
  return words;
}

/// Counts of the n-grams.
static std::map<std::vector<std::string>, int64_t> countNgrams(const std::vector<std::string> &words, size_t n) {
  std::map<std::vector<std::string>, int64_t> counts;
  for (size_t i = 0; i + n <= words.size(); ++i)
    ++counts[{words.begin() + static_cast<int64_t>(i), words.begin() + static_cast<int64_t>(i + n)}];
  return counts;
}

Bleu computeBleu(const std::vector<std::string> &lines, const std::vector<std::string> &references,
                 const BleuOptions &options) {
  if (lines.size() != references.size())
    throw Error(fmt::format("expected a reference for each of {} lines, but got {} references", lines.size(),
                            references.size()));
  Bleu bleu;
  std::array<int64_t, 4> matches = {}, runs = {};
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::vector<std::string> words = bleuWords(lines[i], options), others = bleuWords(references[i], options);
    bleu.length += std::ssize(words);
    bleu.referenceLength += std::ssize(others);
    for (size_t n = 1; n <= 4; ++n) {
      const auto theirs = countNgrams(others, n);
      for (const auto &[run, count] : countNgrams(words, n)) {
        runs[n - 1] += count;
        if (const auto found = theirs.find(run); found != theirs.end())
          matches[n - 1] += std::min(count, found->second);
      }
    }
  }
  if (bleu.length == 0 || matches[0] == 0)
    return bleu;
  bleu.brevity = bleu.length < bleu.referenceLength
                     ? std::exp(1 - static_cast<double>(bleu.referenceLength) / static_cast<double>(bleu.length))
                     : 1;
  double logarithms = 0, part = 1;
  for (size_t n = 0; n < 4; ++n) {
    if (runs[n] == 0) // no line has n words
      return bleu;
    const double found = matches[n] > 0 ? static_cast<double>(matches[n]) : part /= 2;
    bleu.precisions[n] = 100 * found / static_cast<double>(runs[n]);
    logarithms += std::log(bleu.precisions[n]);
  }
  bleu.score = bleu.brevity * std::exp(logarithms / 4);
  return bleu;
}

} // namespace kiln
