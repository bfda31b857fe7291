// Losses of single tokens, and what is made of them.

#include "models/gpt2/eval.h"
#include "models/gpt2/predictor.h"
#include "test/devices.h"
#include "test/expect_error.h"
#include "test/models/gpt2/beside_reference.h"

#include <algorithm>

using namespace kiln;
using namespace kiln::test;

namespace {

class EvalTest : public DeviceTest {
protected:
  const Network network{{1, 2, 16, 24, 256}};
  const std::vector<char> weights = randomBuffers(network.parameters(), 5).values;
  const Tokenizer bytes{byteVocabulary()};
  const std::vector<HellaSwagTask> tasks = {
      {"to be", {"or not", "x", "to be to be", "ab"}, 1},
      {"a", {"b", "cc", "ddd", "eeee"}, 0},
      {"this context is longer than all that is seen", {"a", "b", "not to be", "d"}, 2}};
};

// A hit is a target that is the likeliest token, and a loss its negative logarithm: both as the predictor's logits say.
TEST_P(EvalTest, LossesAndHitsAreThoseOfThePrediction) {
  Evaluator evaluator(Device::open(GetParam()), network, weights, 1);
  Predictor predictor(Device::open(GetParam()), network, weights);
  Batch batch = randomBatch(network.config(), 1, 3);
  std::vector<int32_t> likeliest;
  std::vector<double> losses;
  for (int64_t t = 0; t < 24; ++t) {
    const std::vector<float> logits = predictor.logitsAfter({batch.tokens.begin(), batch.tokens.begin() + t + 1});
    const auto top = std::max_element(logits.begin(), logits.end());
    if (t % 2)
      batch.targets[t] = static_cast<int32_t>(top - logits.begin());
    if (t % 5 == 4)
      batch.targets[t] = ignoredTarget;
    double sum = 0;
    for (const float x : logits)
      sum += std::exp(double(x) - *top);
    losses.push_back(t % 5 == 4 ? 0 : std::log(sum) + *top - logits[batch.targets[t]]);
  }
  const Evaluator::Result result = evaluator.evaluate(inputsOf(batch));
  for (int64_t t = 0; t < 24; ++t) {
    EXPECT_NEAR(result.losses[t], losses[t], 1e-4) << t;
    if (t % 2 || t % 5 == 4)
      EXPECT_EQ(result.hits[t], t % 5 != 4) << t;
  }
}

// An ending's score is the loss of its own tokens behind the context, whatever stands beside it in the batch and
// however long its padding is; a context that is too long loses its beginning.
TEST_P(EvalTest, EndingsAreScoredBehindTheirContext) {
  Evaluator evaluator(Device::open(GetParam()), network, weights, 8),
      alone(Device::open(GetParam()), network, weights, 4);
  Predictor predictor(Device::open(GetParam()), network, weights);
  const HellaSwagScore score = scoreHellaSwag(evaluator, bytes, tasks);
  ASSERT_EQ(score.sums.size(), tasks.size());
  EXPECT_EQ(score.tasks, 3);
  int64_t bySum = 0, byMean = 0;
  for (size_t t = 0; t < tasks.size(); ++t) {
    std::array<double, 4> sums = {}, means = {};
    for (size_t e = 0; e < 4; ++e) {
      const std::string ending = " " + tasks[t].endings[e], all = tasks[t].context + ending;
      const std::string seen = all.substr(all.size() - std::min<size_t>(all.size(), 25));
      for (size_t at = seen.size() - ending.size(); at < seen.size(); ++at) {
        const std::vector<float> logits =
            predictor.logitsAfter({seen.begin(), seen.begin() + static_cast<int64_t>(at)});
        double sum = 0;
        for (const float x : logits)
          sum += std::exp(double(x));
        sums[e] += std::log(sum) - logits[static_cast<uint8_t>(seen[at])];
      }
      means[e] = sums[e] / static_cast<double>(ending.size());
      EXPECT_NEAR(score.sums[t][e], sums[e], 1e-4 * sums[e]) << t << " " << e;
    }
    bySum += std::min_element(sums.begin(), sums.end()) - sums.begin() == tasks[t].right;
    byMean += std::min_element(means.begin(), means.end()) - means.begin() == tasks[t].right;
  }
  EXPECT_EQ(score.bySum, bySum);
  EXPECT_EQ(score.byMean, byMean);
  const HellaSwagScore same = scoreHellaSwag(alone, bytes, tasks);
  for (size_t t = 0; t < tasks.size(); ++t)
    for (size_t e = 0; e < 4; ++e)
      EXPECT_NEAR(same.sums[t][e], score.sums[t][e], 1e-5 * score.sums[t][e]);
}

TEST_P(EvalTest, EndingsThatDoNotFitAreErrors) {
  Evaluator evaluator(Device::open(GetParam()), network, weights, 4);
  expectError([&] { scoreHellaSwag(evaluator, bytes, {{"a", {"b", std::string(24, 'c'), "d", "e"}, 0}}); },
              {"expected a context and an ending of at most 24 tokens behind it, but got 1 and 25"});
  expectError([&] { scoreHellaSwag(evaluator, bytes, {{"", {"b", "c", "d", "e"}, 0}}); }, {"but got 0 and 2"});
}

KILN_ON_DEVICES(EvalTest);

} // namespace
