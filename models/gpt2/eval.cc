// Batches of endings, and sums over batches of a text.

#include "models/gpt2/eval.h"
#include "models/gpt2/trained_model.h"
#include "models/train/language_data.h"
#include "runtime/Streams.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

namespace kiln {

namespace {
/// An ending behind its context, and where its own tokens begin.
struct Sequence {
  std::vector<int32_t> tokens;
  int64_t given = 0;
};
} // namespace

/// The last tokens of the context and the ending, as many as the model sees.
static Sequence sequenceOf(const Tokenizer &tokenizer, const std::vector<int32_t> &context, const std::string &ending,
                           int64_t length) {
  const std::vector<int32_t> tokens = tokenizer.encode(" " + ending);
  if (std::ssize(tokens) > length || context.empty())
    throw Error(fmt::format("expected a context and an ending of at most {} tokens behind it, but got {} and {}: '{}'",
                            length, context.size(), tokens.size(), ending));
  const int64_t given = std::min(std::ssize(context), length + 1 - std::ssize(tokens));
  Sequence sequence = {{context.end() - given, context.end()}, given};
  sequence.tokens.insert(sequence.tokens.end(), tokens.begin(), tokens.end());
  return sequence;
}

HellaSwagScore scoreHellaSwag(Evaluator &evaluator, const Tokenizer &tokenizer,
                              const std::vector<HellaSwagTask> &tasks) {
  const int64_t length = evaluator.length(), together = evaluator.sequences() / 4;
  HellaSwagScore score = {.tasks = std::ssize(tasks)};
  for (int64_t first = 0; first < std::ssize(tasks); first += together) {
    const int64_t count = std::min(together, std::ssize(tasks) - first);
    std::vector<int32_t> tokens(evaluator.sequences() * length, 0), targets(tokens.size(), ignoredTarget);
    std::vector<int64_t> judged(4 * count);
    for (int64_t i = 0; i < 4 * count; ++i) {
      const HellaSwagTask &task = tasks[first + i / 4];
      const Sequence s = sequenceOf(tokenizer, tokenizer.encode(task.context), task.endings[i % 4], length);
      std::copy(s.tokens.begin(), s.tokens.end() - 1, tokens.begin() + i * length);
      std::copy(s.tokens.begin() + s.given, s.tokens.end(), targets.begin() + i * length + s.given - 1);
      judged[i] = std::ssize(s.tokens) - s.given;
    }
    const std::vector<float> losses = evaluator.evaluate(languageBatch(tokens, targets)).losses;
    for (int64_t t = 0; t < count; ++t) {
      std::array<double, 4> sums = {}, means = {};
      for (int64_t e = 0; e < 4; ++e) {
        const auto begin = losses.begin() + (4 * t + e) * length;
        sums[e] = std::accumulate(begin, begin + length, 0.0);
        means[e] = sums[e] / static_cast<double>(judged[4 * t + e]);
      }
      const auto least = [](const std::array<double, 4> &all) {
        return std::min_element(all.begin(), all.end()) - all.begin();
      };
      score.bySum += least(sums) == tasks[first + t].right;
      score.byMean += least(means) == tasks[first + t].right;
      score.sums.push_back(sums);
    }
  }
  return score;
}

/// Mean loss and share of hits over what the source holds out.
static std::string heldOut(Evaluator &evaluator, const LanguageData &data) {
  double loss = 0, hits = 0;
  int64_t targets = 0;
  for (int64_t first = 0; first < data.validationSequences(); first += evaluator.sequences()) {
    const Evaluator::Result result = evaluator.evaluate(data.validation(first, evaluator.sequences()));
    loss += std::accumulate(result.losses.begin(), result.losses.end(), 0.0);
    hits += std::accumulate(result.hits.begin(), result.hits.end(), 0.0);
    targets += data.validationTargets(first, evaluator.sequences());
  }
  const auto count = static_cast<double>(targets);
  return fmt::format("loss {:.4f}, accuracy {:.4f} over {} tokens\n", loss / count, hits / count, targets);
}

void evaluate(const EvalOptions &options) {
  if (!options.data && !options.hellaSwag)
    throw Error("expected --data or --hellaswag, but got neither");
  if (options.tasks < 0 || options.batch < 4 || options.batch % 4 != 0)
    throw Error(fmt::format("expected 'tasks' to be at least 0 and 'batch' a multiple of 4, but got {} and {}",
                            options.tasks, options.batch));
  const TrainedModel model = readTrained(options.folder, options.dtype);
  const Network network(model.config);
  const Tokenizer tokenizer(model.vocabulary.value_or(byteVocabulary()));
  Evaluator evaluator(openDevice(options.machine), network, model.weights, options.batch);
  if (options.data) {
    const LanguageData data({.data = *options.data,
                             .held = options.validation,
                             .tokenizer = model.vocabulary ? &tokenizer : nullptr,
                             .vocab = model.config.vocab},
                            model.config.context, 1);
    writeResult(heldOut(evaluator, data));
  }
  if (!options.hellaSwag)
    return;
  std::vector<HellaSwagTask> tasks = readHellaSwag(*options.hellaSwag);
  if (options.tasks > 0 && options.tasks < std::ssize(tasks))
    tasks.resize(options.tasks);
  const HellaSwagScore score = scoreHellaSwag(evaluator, tokenizer, tasks);
  const auto share = [&](int64_t right) { return static_cast<double>(right) / static_cast<double>(score.tasks); };
  writeResult(fmt::format("hellaswag {:.4f} by mean loss, {:.4f} by its sum, of {} tasks\n", share(score.byMean),
                          share(score.bySum), score.tasks));
}

} // namespace kiln
