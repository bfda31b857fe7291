// Repetition penalty, temperature, and the three filters.

#include "models/generate/sampling.h"
#include "dialect/dsl/Types.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <set>

namespace kiln {

void verify(const SamplingParams &c) {
  if (!(c.temperature >= 0) || std::isinf(c.temperature))
    throw Error(fmt::format("expected '--temperature' to be at least 0, but got {}", c.temperature));
  if (c.topK < 0)
    throw Error(fmt::format("expected '--top-k' to be at least 0, but got {}", c.topK));
  if (!(c.topP > 0 && c.topP <= 1))
    throw Error(fmt::format("expected '--top-p' to be above 0 and at most 1, but got {}", c.topP));
  if (!(c.minP >= 0 && c.minP <= 1))
    throw Error(fmt::format("expected '--min-p' to be from 0 to 1, but got {}", c.minP));
  if (!(c.repetitionPenalty > 0) || std::isinf(c.repetitionPenalty))
    throw Error(fmt::format("expected '--repetition-penalty' to be above 0, but got {}", c.repetitionPenalty));
}

/// Logits after the repetition penalty.
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

/// An order in which NaN is less than any number.
static bool isLess(float a, float b) { return a < b || (std::isnan(a) && !std::isnan(b)); }

namespace {
/// Tokens by decreasing logit; ties by increasing number. They are sorted lazily, because usually only the first few of
/// a large vocabulary are needed.
class Ranking {
public:
  /// All tokens, or those of the k largest logits and those tied with the last of these.
  Ranking(const std::vector<float> &logits, int64_t k);
  int64_t size() const { return std::ssize(order); }
  int64_t operator[](int64_t at);
  const std::vector<int64_t> &tokens() const { return order; }

private:
  bool isLarger(int64_t a, int64_t b) const {
    return isLess(logits[b], logits[a]) || (!isLess(logits[a], logits[b]) && a < b);
  }

  const std::vector<float> &logits;
  std::vector<int64_t> order;
  int64_t sorted = 0; // number of sorted tokens
};
} // namespace

Ranking::Ranking(const std::vector<float> &logits, int64_t k) : logits(logits), order(logits.size()) {
  std::iota(order.begin(), order.end(), int64_t{0});
  if (k < 1 || k >= size())
    return;
  std::nth_element(order.begin(), order.begin() + k - 1, order.end(), [&](auto a, auto b) { return isLarger(a, b); });
  const float last = logits[order[k - 1]];
  order.erase(std::partition(order.begin(), order.end(), [&](int64_t i) { return !isLess(logits[i], last); }),
              order.end());
}

int64_t Ranking::operator[](int64_t at) {
  constexpr int64_t first = 64, grows = 8;
  const auto larger = [&](int64_t a, int64_t b) { return isLarger(a, b); };
  while (at >= sorted) {
    const int64_t next = std::min(size(), std::max(first, grows * sorted));
    if (next < size())
      std::nth_element(order.begin() + sorted, order.begin() + next - 1, order.end(), larger);
    std::sort(order.begin() + sorted, order.begin() + next, larger);
    sorted = next;
  }
  return order[at];
}

namespace {
/// The tokens left by the filters: the first `count` of a ranking, each with a weight, its probability times `total`.
struct Left {
  const std::vector<float> &logits;
  double temperature;
  Ranking ranking;
  float largest;
  int64_t count;
  double total = 0;

  Left(const std::vector<float> &logits, const SamplingParams &choice);
  /// Logits equal to the largest, infinite ones included, share the probability equally.
  double computeWeight(int64_t token) const {
    if (logits[token] == largest)
      return 1;
    const double scaled = (double(logits[token]) - largest) / temperature;
    return std::isnan(scaled) ? 0 : std::exp(scaled);
  }
  double weight(int64_t at) { return computeWeight(ranking[at]); }
};
} // namespace

Left::Left(const std::vector<float> &logits, const SamplingParams &c)
    : logits(logits), temperature(c.temperature), ranking(logits, c.topK),
      largest(*std::max_element(logits.begin(), logits.end(), isLess)), count(ranking.size()) {
  if (std::isnan(largest))
    throw Error("expected a logit that is a number, but all logits are NaN");
  if (temperature == 0) { // the lowest number on a tie
    count = 1, total = 1;
    return;
  }
  for (const int64_t token : ranking.tokens())
    total += computeWeight(token);
  if (c.topP < 1) {
    double before = 0;
    int64_t left = 0;
    while (left < count && (left == 0 || before / total < c.topP))
      before += weight(left++);
    count = left, total = before;
  }
  if (c.minP > 0) {
    total = 0;
    int64_t left = 0;
    for (double next = 1; left < count && (next = weight(left)) >= c.minP; ++left)
      total += next;
    count = left;
  }
}

std::vector<LikelyToken> likelyTokens(std::span<const float> given, std::span<const int32_t> seen,
                                      const SamplingParams &c) {
  const std::vector<float> logits = penalised(given, seen, c.repetitionPenalty);
  Left left(logits, c);
  std::vector<LikelyToken> all;
  for (int64_t i = 0; i < left.count; ++i)
    all.push_back({left.ranking[i], left.weight(i) / left.total});
  return all;
}

int64_t sampleToken(std::span<const float> given, std::span<const int32_t> seen, const SamplingParams &c,
                    double uniform) {
  const std::vector<float> logits = penalised(given, seen, c.repetitionPenalty);
  if (c.temperature == 0) {
    const auto largest = std::max_element(logits.begin(), logits.end(), isLess); // the first on a tie
    if (std::isnan(*largest))
      throw Error("expected a logit that is a number, but all logits are NaN");
    return largest - logits.begin();
  }
  Left left(logits, c);
  int64_t token = left.ranking[0];
  double before = uniform * left.total;
  for (int64_t i = 0; i < left.count; ++i) {
    const double weight = left.weight(i);
    if (weight == 0)
      break;
    token = left.ranking[i];
    if ((before -= weight) < 0)
      break;
  }
  return token; // the last token with a probability, if rounding of the sum left no other
}

} // namespace kiln
