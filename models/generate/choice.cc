// Penalty, temperature, and the three filters.

#include "models/generate/choice.h"
#include "dialect/dsl/Types.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>

namespace kiln {

void verify(const Choice &c) {
  if (!(c.temperature >= 0) || std::isinf(c.temperature))
    throw Error(fmt::format("expected 'temperature' to be a number from 0 on, but got {}", c.temperature));
  if (c.topK < 0)
    throw Error(fmt::format("expected 'top-k' to be at least 0, but got {}", c.topK));
  if (!(c.topP > 0 && c.topP <= 1))
    throw Error(fmt::format("expected 'top-p' to be above 0 and at most 1, but got {}", c.topP));
  if (!(c.minP >= 0 && c.minP <= 1))
    throw Error(fmt::format("expected 'min-p' to be from 0 to 1, but got {}", c.minP));
  if (!(c.repetitionPenalty > 0) || std::isinf(c.repetitionPenalty))
    throw Error(fmt::format("expected 'repetition-penalty' to be above 0, but got {}", c.repetitionPenalty));
}

/// Logits with those of tokens that are there already made smaller.
static std::vector<float> penalised(std::span<const float> logits, std::span<const int32_t> seen, double penalty) {
  std::vector<float> all(logits.begin(), logits.end());
  if (penalty == 1)
    return all;
  for (const int32_t token : std::set<int32_t>(seen.begin(), seen.end()))
    if (token >= 0 && token < std::ssize(all)) {
      const double logit = all[token];
      all[token] = static_cast<float>(logit > 0 ? logit / penalty : logit * penalty);
    }
  return all;
}

/// NaN is less than any number.
static bool isLess(float a, float b) { return a < b || (std::isnan(a) && !std::isnan(b)); }

/// The tokens among which the choice is made, the likeliest first: those of the k largest logits and of any as large as
/// the last of these.
static std::vector<int64_t> candidates(const std::vector<float> &logits, const Choice &c) {
  const auto isLarger = [&](int64_t a, int64_t b) {
    return isLess(logits[b], logits[a]) || (!isLess(logits[a], logits[b]) && a < b);
  };
  std::vector<int64_t> order(logits.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = static_cast<int64_t>(i);
  if (c.temperature == 0)
    return {*std::min_element(order.begin(), order.end(), isLarger)};
  if (c.topK > 0 && c.topK < std::ssize(order)) {
    std::nth_element(order.begin(), order.begin() + c.topK - 1, order.end(), isLarger);
    const float last = logits[order[c.topK - 1]];
    order.erase(std::partition(order.begin(), order.end(), [&](int64_t i) { return !isLess(logits[i], last); }),
                order.end());
  }
  std::sort(order.begin(), order.end(), isLarger);
  return order;
}

std::vector<Likely> likely(std::span<const float> given, std::span<const int32_t> seen, const Choice &c) {
  const std::vector<float> logits = penalised(given, seen, c.repetitionPenalty);
  std::vector<Likely> left;
  double total = 0;
  const std::vector<int64_t> order = candidates(logits, c);
  const float largest = logits[order.front()];
  if (std::isnan(largest))
    throw Error("expected a logit that is a number, but each is NaN");
  for (const int64_t token : order) { // those as large share alike, infinite ones too
    const bool isLargest = logits[token] == largest;
    const double scaled = isLargest ? 0 : (double(logits[token]) - largest) / c.temperature;
    left.push_back({token, std::isnan(scaled) ? 0 : std::exp(scaled)});
    total += left.back().probability;
  }
  const auto normalise = [&] {
    for (Likely &l : left)
      l.probability /= total;
  };
  normalise();
  if (c.topP < 1) {
    double before = 0;
    size_t count = 0;
    while (count < left.size() && (count == 0 || before < c.topP))
      before += left[count++].probability;
    left.resize(count);
    total = before;
    normalise();
  }
  if (c.minP > 0) {
    const double least = c.minP * left.front().probability;
    std::erase_if(left, [&](const Likely &l) { return l.probability < least; });
    total = 0;
    for (const Likely &l : left)
      total += l.probability;
    normalise();
  }
  return left;
}

int64_t choose(std::span<const float> logits, std::span<const int32_t> seen, const Choice &choice, double uniform) {
  std::vector<Likely> left = likely(logits, seen, choice);
  std::erase_if(left, [](const Likely &l) { return l.probability == 0; });
  for (const Likely &l : left)
    if ((uniform -= l.probability) < 0)
      return l.token;
  return left.back().token; // the probabilities' sum is rounded
}

} // namespace kiln
