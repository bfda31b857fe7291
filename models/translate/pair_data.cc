// Reads pairs of lines, encodes them, and keeps their tokenizers.

#include "models/translate/pair_data.h"
#include "models/data/files.h"
#include "models/data/text.h"
#include "models/tokens/files.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <set>

namespace kiln {

//===-- Data ----------------------------------------------------------------------------------------------------===//

PairMarks findMarks(const PairTokenizers &tokenizers) {
  PairMarks marks;
  const auto marksIn = [](const Tokenizer &tokenizer, const char *side) {
    const std::optional<int32_t> begin = documentMark(tokenizer.vocabulary());
    if (!begin)
      throw Error(fmt::format("expected a tokenizer of the {} with the special tokens <s> and </s>, or <|endoftext|>, "
                              "but it has {} special tokens",
                              side, tokenizer.vocabulary().specials.size()));
    return std::pair(*begin, documentEnd(tokenizer.vocabulary()).value_or(*begin));
  };
  std::tie(marks.begin, marks.end) = marksIn(tokenizers.target, "target");
  marks.sourceEnd = marksIn(tokenizers.source, "source").second;
  return marks;
}

std::vector<std::string> readLines(const std::string &path) {
  const std::string text = readUnpacked(path, mostTextBytes());
  std::vector<std::string> lines;
  forLines(text, [&](std::string_view line) { lines.emplace_back(line); });
  if (lines.empty())
    throw Error(fmt::format("expected lines of text in '{}', but it is empty", path));
  return lines;
}

std::pair<std::vector<std::string>, std::vector<std::string>> readLinePairs(const std::string &source,
                                                                            const std::string &target) {
  std::pair both = {readLines(source), readLines(target)};
  if (both.first.size() != both.second.size())
    throw Error(fmt::format("expected as many lines in '{}' as in '{}', but got {} and {}", source, target,
                            both.first.size(), both.second.size()));
  return both;
}

/// The pairs of two files without those that have an empty side.
static std::vector<TokenPair> pairsIn(const PairFiles &files, const PairTokenizers &tokenizers) {
  const auto [sources, targets] = readLinePairs(files.source, files.target);
  std::vector<TokenPair> pairs;
  for (size_t i = 0; i < sources.size(); ++i) {
    TokenPair pair = {tokenizers.source.encode(sources[i]), tokenizers.target.encode(targets[i])};
    if (!pair.source.empty() && !pair.target.empty())
      pairs.push_back(std::move(pair));
  }
  return pairs;
}

/// FNV-1a hash of all tokens, and their size in bytes.
static DataIdentity makeIdentity(const PairFiles &files, const std::vector<TokenPair> &pairs) {
  int64_t bytes = 0;
  uint64_t hash = fnv1a("");
  for (const TokenPair &pair : pairs)
    for (const std::vector<int32_t> *side : {&pair.source, &pair.target}) {
      const auto count = static_cast<int32_t>(side->size());
      hash = fnv1a({reinterpret_cast<const char *>(&count), sizeof(count)}, hash);
      hash = fnv1a({reinterpret_cast<const char *>(side->data()), side->size() * sizeof(int32_t)}, hash);
      bytes += std::ssize(*side) * int64_t{sizeof(int32_t)} + int64_t{sizeof(count)};
    }
  return {files.source + " and " + files.target, bytes, hash};
}

PairData::PairData(const PairFiles &train, const PairFiles &validation, const PairTokenizers &tokenizers,
                   int64_t context, const PairLimits &limits, uint64_t seed) {
  const PairMarks marks = findMarks(tokenizers);
  std::vector<TokenPair> all = pairsIn(train, tokenizers), others = pairsIn(validation, tokenizers);
  known = makeIdentity(train, all);
  pairs = std::ssize(all);
  leftOut = static_cast<int64_t>(std::erase_if(all, [&](const TokenPair &pair) {
    return std::ssize(pair.source) >= context || std::ssize(pair.target) >= context;
  }));
  if (all.empty() || others.empty())
    throw Error(fmt::format("expected pairs of lines in '{}' and '{}' of at most {} tokens, but there are none",
                            (all.empty() ? train : validation).source, (all.empty() ? train : validation).target,
                            context - 1));
  for (TokenPair &pair : others)
    for (std::vector<int32_t> *side : {&pair.source, &pair.target})
      side->resize(std::min<int64_t>(std::ssize(*side), context - 1));
  batches.emplace(std::move(all), marks, limits, seed);
  held = std::make_unique<PairBatches>(std::move(others), marks, limits);
}

std::vector<BatchShape> PairData::shapes() const {
  std::set<BatchShape> all;
  for (const PairBatches *some : std::initializer_list<const PairBatches *>{&*batches, held.get()})
    for (const BatchShape &shape : some->shapes())
      all.insert(shape);
  return {all.begin(), all.end()};
}

int64_t PairData::trainingTargets(int64_t first, int64_t count) {
  int64_t all = 0;
  for (int64_t i = first; i < first + count; ++i)
    all += batches->targets(i);
  return all;
}

int64_t PairData::validationTargets(const std::vector<int64_t> &numbers) const {
  int64_t all = 0;
  for (const int64_t number : numbers)
    all += held->targets(number);
  return all;
}

std::vector<std::string> PairData::notes() const {
  std::vector<std::string> lines = {fmt::format("{} pairs in {} micro-batches of {} shapes", pairs - leftOut,
                                                batches->batches(), batches->shapes().size())};
  if (leftOut > 0)
    lines.push_back(fmt::format("{} pairs are longer than the context, and are left out", leftOut));
  return lines;
}

} // namespace kiln

namespace kiln::translate {

//===-- Tokenizers of a run -------------------------------------------------------------------------------------===//

namespace fs = std::filesystem;

void writeRunTokens(const std::string &folder, const PairTokenizers &tokenizers) {
  for (const char *name : {"tokenizer.json", "vocab.json", "merges.txt"}) // left by an earlier run
    for (const fs::path &path : {fs::path(folder), fs::path(folder) / "source"})
      fs::remove(path / name);
  writeVocabulary(folder, tokenizers.target.vocabulary());
  if (tokenizers.source.vocabulary() != tokenizers.target.vocabulary())
    writeVocabulary((fs::path(folder) / "source").string(), tokenizers.source.vocabulary());
}

PairTokenizers readRunTokens(const std::string &folder) {
  const fs::path here = folder, above = fs::absolute(here).parent_path();
  const bool isCheckpoint = !hasVocabulary(folder) && fs::exists(here / "training.json");
  const fs::path run = isCheckpoint ? above : here;
  if (!hasVocabulary(run.string()))
    throw Error(fmt::format("expected the tokenizer of a run in '{}', but there is none", run.string()));
  const Tokenizer target(readVocabulary(run.string()));
  const std::string source = (run / "source").string();
  return {hasVocabulary(source) ? Tokenizer(readVocabulary(source)) : target, target};
}

} // namespace kiln::translate
