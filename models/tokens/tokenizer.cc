// Merging by rank, with the pieces that were seen before at hand.

#include "models/tokens/tokenizer.h"
#include "dialect/dsl/Types.h"
#include "models/tokens/threads.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <queue>
#include <utility>

namespace kiln {

//===-- Tables --------------------------------------------------------------------------------------------------===//

static uint64_t pairOf(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

/// Spreads a number over 64 bits: the finaliser of MurmurHash3.
static uint64_t mixed(uint64_t x) {
  x = (x ^ x >> 33) * 0xff51afd7ed558ccd;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53;
  return x ^ x >> 33;
}

MergeTable::MergeTable(const std::vector<Merge> &merges) : slots(std::bit_ceil(2 * merges.size() + 2)) {
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const uint64_t pair = pairOf(merges[rank].left, merges[rank].right);
    size_t at = mixed(pair) & (slots.size() - 1);
    while (slots[at].rank != none && slots[at].pair != pair)
      at = (at + 1) & (slots.size() - 1);
    if (slots[at].rank == none) // of two ranks the lower one
      slots[at] = {pair, static_cast<uint32_t>(rank)};
  }
}

uint32_t MergeTable::rank(int32_t left, int32_t right) const {
  const uint64_t pair = pairOf(left, right);
  size_t at = mixed(pair) & (slots.size() - 1);
  while (slots[at].rank != none && slots[at].pair != pair)
    at = (at + 1) & (slots.size() - 1);
  return slots[at].rank;
}

namespace {

/// Tokens of pieces that were met before; as many as fit the caches of a core, then it begins anew.
class Seen {
public:
  /// The tokens of the piece; nullptr where it is new.
  const std::vector<int32_t> *find(std::string_view piece, uint64_t hash) const {
    if (slots.empty())
      return nullptr;
    for (size_t at = hash & (slots.size() - 1); slots[at].used; at = (at + 1) & (slots.size() - 1))
      if (slots[at].hash == hash && slots[at].piece == piece)
        return &slots[at].tokens;
    return nullptr;
  }
  void insert(std::string_view piece, uint64_t hash, std::span<const int32_t> tokens) {
    if (2 * (used + 1) > slots.size())
      grow();
    place({hash, std::string(piece), {tokens.begin(), tokens.end()}, true});
  }

private:
  struct Slot {
    uint64_t hash = 0;
    std::string piece;
    std::vector<int32_t> tokens;
    bool used = false;
  };
  static constexpr size_t least = 64, most = size_t{1} << 15;

  void place(Slot slot) {
    size_t at = slot.hash & (slots.size() - 1);
    while (slots[at].used)
      at = (at + 1) & (slots.size() - 1);
    slots[at] = std::move(slot);
    ++used;
  }
  void grow() {
    std::vector<Slot> old(slots.size() < most ? std::max(least, 2 * slots.size()) : most);
    old.swap(slots);
    used = 0;
    if (old.size() < most)
      for (Slot &slot : old)
        if (slot.used)
          place(std::move(slot));
  }

  std::vector<Slot> slots;
  size_t used = 0;
};

} // namespace

static uint64_t hashOf(std::string_view bytes) {
  uint64_t hash = bytes.size();
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    hash = mixed(hash ^ word);
  }
  uint64_t word = 0;
  std::memcpy(&word, bytes.data(), bytes.size());
  return mixed(hash ^ word);
}

//===-- Encoding ------------------------------------------------------------------------------------------------===//

/// Pieces longer than this are not kept.
static constexpr size_t longestSeen = 48;
/// Pieces of more tokens are merged with a heap, not by looking through all pairs for each merge.
static constexpr size_t longestScan = 24;

/// One thread's encoding of a text.
class Tokenizer::Encoding {
public:
  explicit Encoding(const Tokenizer &of) : of(of) {}

  void addText(std::string_view text) {
    if (of.words.merges.empty() && of.whole.empty()) // a token a byte
      for (const char byte : text)
        result.push_back(of.bytes[static_cast<uint8_t>(byte)]);
    else
      of.splitter.split(text, [&](std::string_view piece) { add(piece); });
  }

  std::vector<int32_t> result;

private:
  void add(std::string_view piece) {
    if (piece.size() == 1) {
      result.push_back(of.bytes[static_cast<uint8_t>(piece[0])]);
      return;
    }
    const bool kept = piece.size() <= longestSeen;
    const uint64_t hash = kept ? kiln::hashOf(piece) : 0;
    if (kept)
      if (const std::vector<int32_t> *known = seen.find(piece, hash)) {
        result.insert(result.end(), known->begin(), known->end());
        return;
      }
    const size_t begin = result.size();
    if (!addWhole(piece))
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
    for (const char byte : piece)
      ids.push_back(of.bytes[static_cast<uint8_t>(byte)]);
    if (ids.size() <= longestScan)
      mergeByScan();
    else
      mergeByHeap();
    result.insert(result.end(), ids.begin(), ids.end());
  }

  uint32_t rankAt(size_t left, size_t right) const { return of.merges.rank(ids[left], ids[right]); }

  /// Of all pairs the first of the lowest rank, again and again.
  void mergeByScan() {
    uint32_t ranks[longestScan]; // of the pair that begins there
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

  /// The same in n log n: a list of tokens, and a heap of pairs, of which those that are gone are passed over.
  void mergeByHeap() {
    const size_t count = ids.size();
    next.resize(count);
    before.resize(count);
    ranks.assign(count, MergeTable::none);
    for (size_t i = 0; i < count; ++i) {
      next[i] = i + 1;
      before[i] = i - 1; // of the first: beyond every number
    }
    using Pair = std::pair<uint32_t, size_t>; // rank, place
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
  Seen seen;
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
    : words(verified(std::move(vocabulary))), splitter(words.split), bytes(byteTokens(words)), merges(words.merges) {
  if (!words.wholePieces)
    return;
  for (int64_t id = 0; id < words.size(); ++id)
    if (!words.tokens[id].empty() && !words.specials.contains(words.tokens[id]))
      whole.emplace_back(words.tokens[id], static_cast<int32_t>(id));
  std::sort(whole.begin(), whole.end());
}

void Tokenizer::walk(std::string_view text, bool specials, const std::function<void(std::string_view)> &take,
                     const std::function<void(int32_t)> &special) const {
  size_t at = 0;
  // The next place of each special token, which is looked for again only when it was passed.
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
  const auto isNamed = [&](const auto &split) { return split.second == words.split; };
  if (threads <= 1 || std::none_of(namedSplits().begin(), namedSplits().end(), isNamed))
    return encode(text, specials);
  // Parts between special tokens, cut again at lines; each thread takes the next one that nobody has.
  std::vector<std::string_view> parts; // empty: the special token of that place
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
      throw Error(fmt::format("expected tokens of the vocabulary, which has {}, but got {}", size(), id));
    text += words.tokens[id];
  }
  return text;
}

} // namespace kiln
