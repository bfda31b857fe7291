// GPT-2's mapping of bytes to characters, and the checks of a vocabulary.

#include "models/tokens/vocabulary.h"
#include "dialect/dsl/Types.h"
#include "models/data/files.h"
#include "models/tokens/split.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace kiln {

/// Whether GPT-2's mapping leaves this byte unchanged: a visible character in Latin-1, other than a space.
static bool isSeen(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
}

const std::vector<uint8_t> &bytesInOrder() {
  static const std::vector<uint8_t> order = [] {
    std::vector<uint8_t> all;
    for (const bool seen : {true, false})
      for (int byte = 0; byte < 256; ++byte)
        if (isSeen(byte) == seen)
          all.push_back(static_cast<uint8_t>(byte));
    return all;
  }();
  return order;
}

/// The code point of each byte's character.
static const std::array<int, 256> &letters() {
  static const std::array<int, 256> points = [] {
    std::array<int, 256> all;
    int next = 256;
    for (int byte = 0; byte < 256; ++byte)
      all[byte] = isSeen(byte) ? byte : next++;
    return all;
  }();
  return points;
}

std::string bytesToLetters(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    const int point = letters()[static_cast<uint8_t>(byte)];
    if (point < 0x80)
      text += static_cast<char>(point);
    else
      text += {static_cast<char>(0xc0 | point >> 6), static_cast<char>(0x80 | (point & 0x3f))};
  }
  return text;
}

bool lettersToBytes(std::string_view text, std::string &bytes) {
  static const std::array<int, 512> byLetter = [] {
    std::array<int, 512> all;
    all.fill(-1);
    for (int byte = 0; byte < 256; ++byte)
      all[letters()[byte]] = byte;
    return all;
  }();
  bytes.clear();
  for (size_t i = 0; i < text.size(); ++i) {
    int point = static_cast<uint8_t>(text[i]);
    if (point >= 0x80) { // two bytes: U+0080 … U+07FF
      if ((point & 0xe0) != 0xc0 || i + 1 == text.size() || (text[i + 1] & 0xc0) != 0x80)
        return false;
      point = (point & 0x1f) << 6 | (text[++i] & 0x3f);
    }
    if (point >= std::ssize(byLetter) || byLetter[point] < 0)
      return false;
    bytes += static_cast<char>(byLetter[point]);
  }
  return true;
}

std::vector<int32_t> byteTokens(const Vocabulary &v) {
  std::vector<int32_t> all(256, -1);
  for (int64_t id = v.size(); id-- > 0;)
    if (v.tokens[id].size() == 1)
      all[static_cast<uint8_t>(v.tokens[id][0])] = static_cast<int32_t>(id);
  for (int byte = 0; byte < 256; ++byte)
    if (all[byte] < 0)
      throw Error(fmt::format("expected a token for every byte, but there is none for {:#04x}", byte));
  return all;
}

void verify(const Vocabulary &v) {
  const auto isToken = [&](int32_t id) { return id >= 0 && id < v.size() && !v.tokens[id].empty(); };
  for (size_t rank = 0; rank < v.merges.size(); ++rank) {
    const auto &[left, right, result] = v.merges[rank];
    if (!isToken(left) || !isToken(right) || !isToken(result) || v.tokens[result] != v.tokens[left] + v.tokens[right])
      throw Error(fmt::format("expected merge {} to join two tokens into a third, but got {} and {} for {}", rank, left,
                              right, result));
  }
  for (const auto &[text, id] : v.specials)
    if (!isToken(id) || v.tokens[id] != text)
      throw Error(fmt::format("expected special token '{}' among the tokens, but it is not number {}", text, id));
  if (v.style == TokenStyle::bytes)
    byteTokens(v);
  else if (!v.specials.contains(unknownToken))
    throw Error(fmt::format("expected a special token {} for unknown words, but there is none", unknownToken));
  else if (v.style == TokenStyle::words && std::find(v.tokens.begin(), v.tokens.end(), endOfWord) == v.tokens.end())
    throw Error(fmt::format("expected the token {}, which ends words, but there is none", endOfWord));
}

static std::optional<int32_t> specialNamed(const Vocabulary &v, const char *name) {
  const auto found = v.specials.find(name);
  return found != v.specials.end() ? std::optional(found->second) : std::nullopt;
}

std::optional<int32_t> documentMark(const Vocabulary &v) {
  for (const char *name : {"<|endoftext|>", "<s>"})
    if (const std::optional<int32_t> mark = specialNamed(v, name))
      return mark;
  return v.specials.size() == 1 && v.style == TokenStyle::bytes ? std::optional(v.specials.begin()->second)
                                                                : std::nullopt;
}

std::optional<int32_t> documentEnd(const Vocabulary &v) { return specialNamed(v, "</s>"); }

uint64_t computeHash(const Vocabulary &v) {
  uint64_t hash = fnv1a("");
  const auto add = [&](std::string_view bytes) { hash = (fnv1a(bytes, hash) ^ bytes.size()) * 0x100000001b3; };
  const auto addNumber = [&](int32_t number) { add({reinterpret_cast<const char *>(&number), sizeof(number)}); };
  for (const std::string &token : v.tokens)
    add(token);
  for (const Merge &merge : v.merges)
    for (const int32_t id : {merge.left, merge.right})
      addNumber(id);
  for (const auto &[text, id] : v.specials)
    addNumber(id);
  add(v.split);
  add(v.wholePieces ? "whole" : "");
  if (v.style != TokenStyle::bytes) // `bytes` is left out, so that the first hashes stay valid
    add(v.style == TokenStyle::words ? "words" : "whole words");
  return hash;
}

Vocabulary byteVocabulary() {
  Vocabulary v;
  for (int byte = 0; byte < 256; ++byte)
    v.tokens.emplace_back(1, static_cast<char>(byte));
  return v;
}

const std::map<std::string, std::string> &namedSplits() {
  static const std::map<std::string, std::string> splits = {
      {"gpt2", R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
      {"gpt4",
       R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)"},
      {"llama3",
       R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}};
  return splits;
}

bool splitsAtLines(TokenStyle style, const std::string &expression) {
  const auto isNamed = [&](const auto &named) { return named.second == expression; };
  return style != TokenStyle::bytes || std::any_of(namedSplits().begin(), namedSplits().end(), isNamed);
}

} // namespace kiln
