// Counts pieces in one table per thread, and merges the most frequent pairs.

#include "models/tokens/bpe_train.h"
#include "dialect/dsl/Types.h"
#include "models/tokens/split.h"
#include "models/tokens/token_tables.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <list>
#include <mutex>
#include <queue>
#include <unordered_map>

namespace kiln {

//===-- Counts --------------------------------------------------------------------------------------------------===//

std::string splitExpression(const std::string &split) {
  const auto named = namedSplits().find(split);
  return named != namedSplits().end() ? named->second : split;
}

size_t PieceCounts::Hash::operator()(std::string_view piece) const { return hashOfPiece(piece); }

PieceCounts::PieceCounts(TokenStyle style, const std::string &split)
    : kind(style), split(style == TokenStyle::bytes ? splitExpression(split) : "") {
  const Splitter any(this->split); // reports an error in the expression before a text is read
}

void PieceCounts::add(std::string_view text, int threads) {
  const std::vector<std::string_view> parts =
      splitsAtLines(kind, split) ? partsAtLines(text, size_t{1} << 20) : std::vector<std::string_view>{text};
  const Splitter splitter(split);
  std::list<Counts> tables; // one per thread
  std::mutex lock;
  workTogether(threads, parts.size(), [&] {
    const std::scoped_lock held(lock);
    return [&, &own = tables.emplace_back()](size_t i) {
      const auto take = [&own](std::string_view piece) {
        const auto place = own.find(piece);
        if (place != own.end())
          ++place->second;
        else
          own.emplace(piece, 1);
      };
      if (kind == TokenStyle::bytes)
        splitter.split(parts[i], take);
      else
        forWords(parts[i], take);
    };
  });
  for (const Counts &table : tables)
    for (const auto &[piece, count] : table)
      counts[piece] += count;
}

std::vector<std::pair<std::string, int64_t>> PieceCounts::sorted() const {
  std::vector<std::pair<std::string, int64_t>> all(counts.begin(), counts.end());
  std::sort(all.begin(), all.end());
  return all;
}

//===-- Training ------------------------------------------------------------------------------------------------===//

namespace {

/// A pair of adjacent tokens and its count. The heap's top is the most frequent pair; ties by the smallest tokens.
struct Frequent {
  int64_t count;
  uint64_t pair;
  bool operator<(const Frequent &other) const { return count != other.count ? count < other.count : pair > other.pair; }
};

/// Pieces as tokens, and the pieces in which each pair occurs.
class Merging {
public:
  /// `symbols` appends a piece's initial tokens to a list.
  Merging(const std::vector<std::pair<std::string, int64_t>> &pieces,
          const std::function<void(std::string_view, std::vector<int32_t> &)> &symbols) {
    for (const auto &[piece, count] : pieces) {
      std::vector<int32_t> &word = words.emplace_back();
      symbols(piece, word);
      counts.push_back(count);
      for (size_t i = 0; i + 1 < word.size(); ++i)
        add(packPair(word[i], word[i + 1]), words.size() - 1, count);
    }
    for (const auto &[pair, found] : pairs)
      heap.push({found.count, pair});
  }

  /// The pair to merge next, or none if no pair occurs `least` times.
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

  /// Replaces the pair by `result` in every word, from left to right.
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
          pairs.at(packPair(word[to - 1], left)).count -= count;
          grown.push_back(packPair(word[to - 1], result));
          add(grown.back(), number, count);
        }
        if (i + 2 < word.size()) {
          pairs.at(packPair(right, word[i + 2])).count -= count;
          grown.push_back(packPair(result, word[i + 2]));
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
    std::vector<uint32_t> words; // words that contain it, or did
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

/// Merges the most frequent pair until the requested number of merges is reached or no pair is frequent enough.
static void learnMerges(Vocabulary &v, Merging &merging, const BpeSettings &settings) {
  std::unordered_map<std::string, int32_t> ids;
  for (int32_t id = 0; id < v.size(); ++id)
    ids.emplace(v.tokens[id], id);
  while (std::ssize(v.merges) < settings.merges) {
    const std::optional<uint64_t> pair = merging.next(settings.leastCount);
    if (!pair)
      break;
    const auto left = static_cast<int32_t>(*pair >> 32), right = static_cast<int32_t>(*pair);
    const auto [place, isNew] = ids.try_emplace(v.tokens[left] + v.tokens[right], static_cast<int32_t>(v.size()));
    if (isNew) // otherwise another merge made the same bytes before
      v.tokens.push_back(place->first);
    v.merges.push_back({left, right, place->second});
    merging.merge(*pair, place->second);
  }
}

static void addSpecial(Vocabulary &v, const std::string &special) {
  if (special.empty() || v.specials.contains(special) ||
      std::find(v.tokens.begin(), v.tokens.end(), special) != v.tokens.end())
    throw Error(fmt::format("expected special tokens that differ from all others, but got '{}'", special));
  v.specials.emplace(special, static_cast<int32_t>(v.size()));
  v.tokens.push_back(special);
}

//===-- The three styles ----------------------------------------------------------------------------------------===//

static Vocabulary trainBytes(const PieceCounts &counts, const BpeSettings &settings) {
  Vocabulary v;
  v.split = splitExpression(settings.split);
  for (const uint8_t byte : bytesInOrder())
    v.tokens.emplace_back(1, static_cast<char>(byte));
  const std::vector<int32_t> bytes = byteTokens(v);
  Merging merging(counts.sorted(), [&](std::string_view piece, std::vector<int32_t> &word) {
    for (const char byte : piece)
      word.push_back(bytes[static_cast<uint8_t>(byte)]);
  });
  learnMerges(v, merging, settings);
  for (const std::string &special : settings.specials)
    addSpecial(v, special);
  return v;
}

/// The padding token, number 0, and the special tokens after all others: begin of document, end of document, unknown.
static constexpr const char *paddingToken = "<pad>";
static constexpr const char *wordSpecials[] = {"<s>", "</s>", unknownToken};

/// The counted words, without those that contain characters with a special meaning in tokens.
static std::vector<std::pair<std::string, int64_t>> plainWords(const PieceCounts &counts, const BpeSettings &settings) {
  std::vector<std::string> taken(std::begin(wordSpecials), std::end(wordSpecials));
  taken.insert(taken.end(), settings.specials.begin(), settings.specials.end());
  taken.emplace_back(paddingToken);
  std::vector<std::pair<std::string, int64_t>> words = counts.sorted();
  std::erase_if(words, [&](const auto &word) {
    return std::any_of(taken.begin(), taken.end(),
                       [&](const std::string &text) { return word.first.find(text) != std::string::npos; });
  });
  return words;
}

static void addWordSpecials(Vocabulary &v, const BpeSettings &settings) {
  for (const char *special : wordSpecials)
    addSpecial(v, special);
  for (const std::string &special : settings.specials)
    addSpecial(v, special);
}

static Vocabulary trainWords(const PieceCounts &counts, const BpeSettings &settings) {
  Vocabulary v;
  v.style = TokenStyle::words;
  addSpecial(v, paddingToken);
  const std::vector<std::pair<std::string, int64_t>> words = plainWords(counts, settings);
  std::map<std::string, int32_t, std::less<>> characters;
  for (const auto &[word, count] : words)
    for (size_t at = 0; at < word.size(); at += characterAt(word, at))
      characters.try_emplace(word.substr(at, characterAt(word, at)));
  for (auto &[character, id] : characters) {
    id = static_cast<int32_t>(v.size());
    v.tokens.push_back(character);
  }
  const auto end = static_cast<int32_t>(v.size());
  v.tokens.emplace_back(endOfWord);
  Merging merging(words, [&](std::string_view word, std::vector<int32_t> &symbols) {
    for (size_t at = 0; at < word.size(); at += characterAt(word, at))
      symbols.push_back(characters.find(word.substr(at, characterAt(word, at)))->second);
    symbols.push_back(end);
  });
  learnMerges(v, merging, settings);
  addWordSpecials(v, settings);
  return v;
}

/// The most frequent words; ties in alphabetical order.
static Vocabulary trainWholeWords(const PieceCounts &counts, const BpeSettings &settings) {
  Vocabulary v;
  v.style = TokenStyle::wholeWords;
  addSpecial(v, paddingToken);
  std::vector<std::pair<std::string, int64_t>> words = plainWords(counts, settings);
  std::stable_sort(words.begin(), words.end(), [](const auto &a, const auto &b) { return a.second > b.second; });
  for (const auto &[word, count] : words)
    if (count >= settings.leastCount && v.size() <= settings.words)
      v.tokens.push_back(word);
  addWordSpecials(v, settings);
  return v;
}

Vocabulary trainBpe(const PieceCounts &counts, const BpeSettings &settings) {
  if (counts.style() == TokenStyle::bytes)
    return trainBytes(counts, settings);
  return counts.style() == TokenStyle::words ? trainWords(counts, settings) : trainWholeWords(counts, settings);
}

} // namespace kiln
