// Sorts pairs by length, cuts them into batches, and shuffles the batches.

#include "models/data/pairs.h"
#include "models/data/batches.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <set>

namespace kiln {

/// Positions of the two sides of a pair. The source has an end mark, and the decoder's input a begin mark; its targets
/// have an end mark.
static int64_t sourceLength(const TokenPair &pair) { return std::ssize(pair.source) + 1; }
static int64_t targetLength(const TokenPair &pair) { return std::ssize(pair.target) + 1; }
static std::pair<int64_t, int64_t> getLengths(const TokenPair &pair) {
  return {targetLength(pair), sourceLength(pair)};
}

PairBatches::PairBatches(std::vector<TokenPair> given, const PairMarks &marks, const PairLimits &limits,
                         std::optional<uint64_t> seed)
    : pairs(std::move(given)), marks(marks) {
  if (pairs.empty())
    throw Error("expected at least one pair of sequences, but got none");
  if (seed)
    random.emplace(*seed, Stream::batches);
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const TokenPair &a, const TokenPair &b) { return getLengths(a) < getLengths(b); });
  int64_t source = 0; // the longest source of the batch so far; sequences are sorted by increasing length
  for (int64_t i = 0; i < std::ssize(pairs); ++i) {
    const int64_t longest = std::max(sourceLength(pairs[i]), targetLength(pairs[i]));
    if (limits.places > 0 && longest > limits.places)
      throw Error(fmt::format(
          "expected sequences of at most {} tokens, the size of a micro-batch (--batch-tokens), but got one of {}",
          limits.places, longest));
    const int64_t count = begins.empty() ? 0 : i + 1 - begins.back();
    source = std::max(source, sourceLength(pairs[i]));
    const bool fits = count <= limits.sequences &&
                      (limits.places == 0 || count * std::max(source, targetLength(pairs[i])) <= limits.places);
    if (begins.empty() || !fits) {
      begins.push_back(i);
      source = sourceLength(pairs[i]);
    }
  }
  begins.push_back(std::ssize(pairs));
  order.resize(pairs.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  turns.resize(batches());
  std::iota(turns.begin(), turns.end(), int64_t{0});
}

BatchShape PairBatches::batchShape(int64_t batch) const {
  BatchShape shape = {begins[batch + 1] - begins[batch], 0, 0};
  for (int64_t i = begins[batch]; i < begins[batch + 1]; ++i) {
    shape.target = std::max(shape.target, targetLength(pairs[i]));
    shape.source = std::max(shape.source, sourceLength(pairs[i]));
  }
  return shape;
}

std::vector<BatchShape> PairBatches::shapes() const {
  std::set<BatchShape> all;
  for (int64_t i = 0; i < batches(); ++i)
    all.insert(batchShape(i));
  return {all.begin(), all.end()};
}

int64_t PairBatches::drawn(int64_t number) {
  if (!random)
    return turns[number % batches()];
  const auto count = std::ssize(pairs);
  if (const int64_t wanted = number / batches(); pass != wanted) {
    const uint64_t counter = 2 * static_cast<uint64_t>(wanted) * static_cast<uint64_t>(count);
    shuffle(order, count, *random, counter);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return getLengths(pairs[a]) < getLengths(pairs[b]); });
    shuffle(turns, batches(), *random, counter + static_cast<uint64_t>(count));
    pass = wanted;
  }
  return turns[number % batches()];
}

int64_t PairBatches::targets(int64_t number) {
  const int64_t at = drawn(number);
  return std::accumulate(pairs.begin() + begins[at], pairs.begin() + begins[at + 1], int64_t{0},
                         [](int64_t sum, const TokenPair &pair) { return sum + targetLength(pair); });
}

HostBatch PairBatches::batch(int64_t number) {
  const int64_t at = drawn(number);
  const BatchShape shape = batchShape(at);
  std::vector<int32_t> tokens(shape.targets(), marks.end), targets(shape.targets(), ignoredTarget),
      sources(shape.sources(), marks.sourceEnd), ranges;
  for (int64_t b = 0; b < shape.sequences; ++b) {
    const auto &[source, target] = pairs[order[begins[at] + b]];
    std::copy(source.begin(), source.end(), sources.begin() + b * shape.source);
    const auto row = tokens.begin() + b * shape.target, next = targets.begin() + b * shape.target;
    *row = marks.begin;
    std::copy(target.begin(), target.end(), row + 1);
    *std::copy(target.begin(), target.end(), next) = marks.end;
    ranges.insert(ranges.end(), {0, static_cast<int32_t>(source.size() + 1)});
  }
  HostBatch inputs = languageBatch(tokens, targets);
  inputs["source tokens"] = sources;
  inputs["source ranges"] = ranges;
  inputs.shape = shape;
  return inputs;
}

} // namespace kiln
