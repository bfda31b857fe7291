// Merges by rank, with a cache of pieces.

#include "models/tokens/tokenizer.h"
#include "dialect/dsl/Types.h"
#include "models/tokens/split.h"
#include "models/tokens/token_tables.h"

#include <algorithm>
#include <fmt/format.h>
#include <queue>
#include <utility>

namespace kiln {

//===-- Encoding ------------------------------------------------------------------------------------------------===//

/// Longer pieces are not cached.
static constexpr size_t longestSeen = 48;
/// Pieces of more tokens are merged with a heap instead of a scan of all pairs for each merge.
static constexpr size_t longestScan = 24;

/// One thread's encoding of a text.
class Tokenizer::Encoding {
public:
  explicit Encoding(const Tokenizer &of) : of(of) {}

  void addText(std::string_view text) {
    if (of.words.style != TokenStyle::bytes)
      forWords(text, [&](std::string_view word) { add(word); });
    else if (of.words.merges.empty() && of.whole.empty()) // one token per byte
      for (const char byte : text)
        result.push_back(of.bytes[static_cast<uint8_t>(byte)]);
    else
      of.splitter.split(text, [&](std::string_view piece) { add(piece); });
  }

  std::vector<int32_t> result;

private:
  void add(std::string_view piece) {
    if (piece.size() == 1 && of.words.style == TokenStyle::bytes) {
      result.push_back(of.bytes[static_cast<uint8_t>(piece[0])]);
      return;
    }
    const bool kept = piece.size() <= longestSeen;
    const uint64_t hash = kept ? hashOfPiece(piece) : 0;
    if (kept)
      if (const std::vector<int32_t> *known = seen.find(piece, hash)) {
        result.insert(result.end(), known->begin(), known->end());
        return;
      }
    const size_t begin = result.size();
    if (of.words.style == TokenStyle::wholeWords) {
      if (!addWhole(piece))
        result.push_back(of.unknown);
    } else if (!addWhole(piece))
      merge(piece);
    if (kept)
      seen.insert(piece, hash, std::span(result).subspan(begin));
  }

  bool addWhole(std::string_view piece) {
    const auto found = std::lower_bound(of.whole.begin(), of.whole.end(), piece,
                                        [](const auto &token, std::string_view p) { return token.first < p; });
    if (found == of.whole.end() || found->first != piece)
      return false;
    result.push_back(found->second);
    return true;
  }

  void merge(std::string_view piece) {
    ids.clear();
    if (of.words.style == TokenStyle::words)
      addCharacters(piece);
    else
      for (const char byte : piece)
        ids.push_back(of.bytes[static_cast<uint8_t>(byte)]);
    if (ids.size() <= longestScan)
      mergeByScan();
    else
      mergeByHeap();
    result.insert(result.end(), ids.begin(), ids.end());
  }

  /// The tokens of a word's characters, followed by its end token.
  void addCharacters(std::string_view word) {
    for (size_t at = 0; at < word.size();) {
      const std::string_view one = word.substr(at, characterAt(word, at));
      const auto known = of.characters.find(one);
      ids.push_back(known != of.characters.end() ? known->second : of.unknown);
      at += one.size();
    }
    ids.push_back(of.characters.find(endOfWord)->second);
  }

  uint32_t rankAt(size_t left, size_t right) const { return of.merges.rank(ids[left], ids[right]); }

  /// Merges the first pair of the lowest rank, repeatedly.
  void mergeByScan() {
    uint32_t ranks[longestScan]; // of the pair that begins at each index
    for (size_t i = 0; i + 1 < ids.size(); ++i)
      ranks[i] = rankAt(i, i + 1);
    while (ids.size() > 1) {
      const size_t at = std::min_element(ranks, ranks + ids.size() - 1) - ranks;
      if (ranks[at] == MergeTable::none)
        return;
      ids[at] = of.words.merges[ranks[at]].result;
      ids.erase(ids.begin() + at + 1);
      if (at + 2 < ids.size())
        std::copy(ranks + at + 2, ranks + ids.size(), ranks + at + 1);
      if (at + 1 < ids.size())
        ranks[at] = rankAt(at, at + 1);
      if (at > 0)
        ranks[at - 1] = rankAt(at - 1, at);
    }
  }

  /// As above in O(n log n): a linked list of tokens, and a heap of pairs, in which stale entries are skipped.
  void mergeByHeap() {
    const size_t count = ids.size();
    next.resize(count);
    before.resize(count);
    ranks.assign(count, MergeTable::none);
    for (size_t i = 0; i < count; ++i) {
      next[i] = i + 1;
      before[i] = i - 1; // wraps to the largest number for the first token
    }
    using Pair = std::pair<uint32_t, size_t>; // rank, index
    std::priority_queue<Pair, std::vector<Pair>, std::greater<>> pairs;
    const auto look = [&](size_t at) {
      ranks[at] = next[at] < count ? rankAt(at, next[at]) : MergeTable::none;
      if (ranks[at] != MergeTable::none)
        pairs.emplace(ranks[at], at);
    };
    for (size_t i = 0; i < count; ++i)
      look(i);
    while (!pairs.empty()) {
      const auto [rank, at] = pairs.top();
      pairs.pop();
      if (ranks[at] != rank)
        continue;
      const size_t gone = next[at];
      ids[at] = of.words.merges[rank].result;
      ids[gone] = -1;
      ranks[gone] = MergeTable::none;
      next[at] = next[gone];
      if (next[at] < count)
        before[next[at]] = at;
      look(at);
      if (before[at] < count)
        look(before[at]);
    }
    std::erase(ids, -1);
  }

  const Tokenizer &of;
  SeenPieces seen;
  std::vector<int32_t> ids;
  std::vector<size_t> next, before;
  std::vector<uint32_t> ranks;
};

//===-- The tokenizer -------------------------------------------------------------------------------------------===//

static Vocabulary verified(Vocabulary vocabulary) {
  verify(vocabulary);
  return vocabulary;
}

Tokenizer::Tokenizer(Vocabulary vocabulary)
    : words(verified(std::move(vocabulary))), splitter(words.split), merges(words.merges) {
  if (words.style == TokenStyle::bytes)
    bytes = byteTokens(words);
  else
    unknown = words.specials.at(unknownToken);
  for (int64_t id = 0; id < words.size(); ++id) {
    const std::string &token = words.tokens[id];
    if (token.empty() || words.specials.contains(token))
      continue;
    if (words.style == TokenStyle::words && characterAt(token, 0) == token.size())
      characters.emplace(token, static_cast<int32_t>(id));
    if (words.wholePieces || words.style == TokenStyle::wholeWords)
      whole.emplace_back(token, static_cast<int32_t>(id));
  }
  std::sort(whole.begin(), whole.end());
}

void Tokenizer::walk(std::string_view text, bool specials, const std::function<void(std::string_view)> &take,
                     const std::function<void(int32_t)> &special) const {
  size_t at = 0;
  // The next occurrence of each special token; searched again only after it was passed.
  std::vector<std::pair<size_t, const std::pair<const std::string, int32_t> *>> places;
  if (specials)
    for (const auto &token : words.specials)
      places.emplace_back(text.find(token.first), &token);
  while (!places.empty()) {
    const auto first = std::min_element(places.begin(), places.end(), [](const auto &a, const auto &b) {
      return a.first != b.first ? a.first < b.first : a.second->first.size() > b.second->first.size();
    });
    if (first->first == std::string_view::npos)
      break;
    const auto [place, token] = *first;
    if (place > at)
      take(text.substr(at, place - at));
    special(token->second);
    at = place + token->first.size();
    for (auto &[next, other] : places)
      if (next < at)
        next = text.find(other->first, at);
  }
  if (at < text.size())
    take(text.substr(at));
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool specials) const {
  Encoding encoding(*this);
  walk(
      text, specials, [&](std::string_view part) { encoding.addText(part); },
      [&](int32_t id) { encoding.result.push_back(id); });
  return std::move(encoding.result);
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool specials, int threads) const {
  if (threads <= 1 || !splitsAtLines(words.style, words.split))
    return encode(text, specials);
  // Parts between special tokens, split again at lines; each thread takes the next free part.
  std::vector<std::string_view> parts; // empty: a special token
  std::vector<std::vector<int32_t>> tokens;
  walk(
      text, specials,
      [&](std::string_view between) {
        for (const std::string_view part : partsAtLines(between, size_t{1} << 18)) {
          parts.push_back(part);
          tokens.emplace_back();
        }
      },
      [&](int32_t id) {
        parts.emplace_back();
        tokens.push_back({id});
      });
  workTogether(threads, parts.size(), [&] {
    return [&, encoding = std::make_shared<Encoding>(*this)](size_t i) {
      if (parts[i].empty())
        return;
      encoding->addText(parts[i]);
      tokens[i] = std::exchange(encoding->result, {});
    };
  });
  std::vector<int32_t> all;
  for (const std::vector<int32_t> &part : tokens)
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) {
    if (id < 0 || id >= size() || words.tokens[id].empty())
      throw Error(fmt::format("expected tokens below {}, the size of the vocabulary, but got {}", size(), id));
    const std::string &token = words.tokens[id];
    if (words.style == TokenStyle::words && token.ends_with(endOfWord))
      text.append(token, 0, token.size() - endOfWord.size()).push_back(' ');
    else
      text += token;
    if (words.style != TokenStyle::bytes && (words.style == TokenStyle::wholeWords || words.specials.contains(token)))
      text += ' ';
  }
  return text;
}

} // namespace kiln
