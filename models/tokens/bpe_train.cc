// Merges one after the other: pairs in a heap by how often they occur, of which those that changed since are put back.

#include "models/tokens/bpe_train.h"
#include "dialect/dsl/Types.h"
#include "models/tokens/split.h"
#include "models/tokens/threads.h"

#include <algorithm>
#include <fmt/format.h>
#include <mutex>
#include <queue>
#include <unordered_map>

namespace kiln {

//===-- Counting pieces -----------------------------------------------------------------------------------------===//

static std::string expressionOf(const std::string &split) {
  const auto named = namedSplits().find(split);
  return named != namedSplits().end() ? named->second : split;
}

PieceCounts::PieceCounts(const std::string &split) : split(expressionOf(split)) { const Splitter any(this->split); }

void PieceCounts::add(std::string_view text, int threads) {
  const auto isNamed = [&](const auto &named) { return named.second == split; };
  const bool cuts = std::any_of(namedSplits().begin(), namedSplits().end(), isNamed);
  const std::vector<std::string_view> parts =
      cuts ? partsAtLines(text, size_t{1} << 20) : std::vector<std::string_view>{text};
  const Splitter splitter(split);
  std::unordered_map<std::string_view, int64_t> all;
  std::mutex lock;
  workTogether(threads, parts.size(), [&] {
    return [&](size_t i) {
      std::unordered_map<std::string_view, int64_t> some;
      splitter.split(parts[i], [&](std::string_view piece) { ++some[piece]; });
      const std::scoped_lock held(lock);
      for (const auto &[piece, count] : some)
        all[piece] += count;
    };
  });
  for (const auto &[piece, count] : all) {
    const auto place = counts.find(piece);
    if (place != counts.end())
      place->second += count;
    else
      counts.emplace(piece, count);
  }
}

std::vector<std::pair<std::string, int64_t>> PieceCounts::sorted() const { return {counts.begin(), counts.end()}; }

//===-- Merging -------------------------------------------------------------------------------------------------===//

namespace {

/// Two tokens side by side, and how often. The heap's top is the most frequent, then the one of the smallest tokens.
struct Frequent {
  int64_t count;
  uint64_t pair;
  bool operator<(const Frequent &other) const { return count != other.count ? count < other.count : pair > other.pair; }
};

uint64_t pairOf(int32_t left, int32_t right) {
  return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
}

/// The pieces as tokens, and where each pair occurs in them.
class Merging {
public:
  Merging(const std::vector<std::pair<std::string, int64_t>> &pieces, const std::vector<int32_t> &bytes) {
    for (const auto &[piece, count] : pieces) {
      std::vector<int32_t> &word = words.emplace_back();
      for (const char byte : piece)
        word.push_back(bytes[static_cast<uint8_t>(byte)]);
      counts.push_back(count);
      for (size_t i = 0; i + 1 < word.size(); ++i)
        add(pairOf(word[i], word[i + 1]), words.size() - 1, count);
    }
    for (const auto &[pair, found] : pairs)
      heap.push({found.count, pair});
  }

  /// The pair to merge next, or nothing when none occurs `least` times.
  std::optional<uint64_t> next(int64_t least) {
    while (!heap.empty()) {
      const auto [count, pair] = heap.top();
      heap.pop();
      const int64_t now = pairs.at(pair).count;
      if (now == count)
        return count >= std::max<int64_t>(least, 1) ? std::optional(pair) : std::nullopt;
      if (now > 0)
        heap.push({now, pair});
    }
    return {};
  }

  /// Puts `result` in the place of the pair, in each word from its beginning.
  void merge(uint64_t pair, int32_t result) {
    const auto left = static_cast<int32_t>(pair >> 32), right = static_cast<int32_t>(pair);
    const std::vector<uint32_t> places = std::move(pairs.at(pair).words);
    std::vector<uint64_t> grown;
    for (const uint32_t number : places) {
      std::vector<int32_t> &word = words[number];
      const int64_t count = counts[number];
      size_t to = 0;
      for (size_t i = 0; i < word.size(); ++i) {
        if (word[i] != left || i + 1 == word.size() || word[i + 1] != right) {
          word[to++] = word[i];
          continue;
        }
        if (to > 0) {
          pairs.at(pairOf(word[to - 1], left)).count -= count;
          grown.push_back(pairOf(word[to - 1], result));
          add(grown.back(), number, count);
        }
        if (i + 2 < word.size()) {
          pairs.at(pairOf(right, word[i + 2])).count -= count;
          grown.push_back(pairOf(result, word[i + 2]));
          add(grown.back(), number, count);
        }
        word[to++] = result;
        ++i;
      }
      word.resize(to);
    }
    pairs.at(pair).count = 0;
    std::sort(grown.begin(), grown.end());
    grown.erase(std::unique(grown.begin(), grown.end()), grown.end());
    for (const uint64_t one : grown)
      if (one != pair && pairs.at(one).count > 0)
        heap.push({pairs.at(one).count, one});
  }

private:
  struct Found {
    int64_t count = 0;
    std::vector<uint32_t> words; // those that have it, or had it
  };
  void add(uint64_t pair, size_t word, int64_t count) {
    Found &found = pairs[pair];
    found.count += count;
    if (found.words.empty() || found.words.back() != word)
      found.words.push_back(static_cast<uint32_t>(word));
  }

  std::vector<std::vector<int32_t>> words;
  std::vector<int64_t> counts;
  std::unordered_map<uint64_t, Found> pairs;
  std::priority_queue<Frequent> heap;
};

} // namespace

Vocabulary trainBpe(const PieceCounts &counts, const BpeSettings &settings) {
  Vocabulary v;
  v.split = expressionOf(settings.split);
  for (const uint8_t byte : bytesInOrder())
    v.tokens.emplace_back(1, static_cast<char>(byte));
  std::unordered_map<std::string, int32_t> ids;
  for (int32_t id = 0; id < v.size(); ++id)
    ids.emplace(v.tokens[id], id);
  Merging merging(counts.sorted(), byteTokens(v));
  while (std::ssize(v.merges) < settings.merges) {
    const std::optional<uint64_t> pair = merging.next(settings.leastCount);
    if (!pair)
      break;
    const auto left = static_cast<int32_t>(*pair >> 32), right = static_cast<int32_t>(*pair);
    const auto [place, isNew] = ids.try_emplace(v.tokens[left] + v.tokens[right], static_cast<int32_t>(v.size()));
    if (isNew) // else other tokens have made the same bytes before
      v.tokens.push_back(place->first);
    v.merges.push_back({left, right, place->second});
    merging.merge(*pair, place->second);
  }
  for (const std::string &special : settings.specials) {
    if (special.empty() || ids.contains(special) || v.specials.contains(special))
      throw Error(fmt::format("expected special tokens that differ from all others, but got '{}'", special));
    v.specials.emplace(special, static_cast<int32_t>(v.size()));
    v.tokens.push_back(special);
  }
  return v;
}

} // namespace kiln
