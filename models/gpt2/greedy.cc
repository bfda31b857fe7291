// A short text for each place, a token at a time.

#include "models/gpt2/greedy.h"
#include "models/data/batches.h"
#include "models/generate/predictor.h"

#include <algorithm>

namespace kiln {

/// Tokens that a text begins with, and that are made, at most.
static constexpr int64_t mostGiven = 12, mostMade = 32;

/// The first tokens of a sequence, as far as they are there.
static std::vector<int32_t> beginningOf(const HostBatch &batch, int64_t most) {
  const std::vector<int32_t> tokens = batch.at("tokens").numbers<int32_t>(),
                             targets = batch.at("targets").numbers<int32_t>();
  std::vector<int32_t> given;
  for (size_t i = 0; i < tokens.size() && std::ssize(given) < most && targets[i] != ignoredTarget; ++i)
    given.push_back(tokens[i]);
  return given;
}

std::vector<std::string> greedyTexts(Trainer &trainer, const Network &network, const TrainData &data,
                                     const Tokenizer &tokenizer, int64_t count) {
  const int64_t context = network.config().context, given = std::min(mostGiven, ceildiv(context, 2));
  const std::optional<int32_t> mark = documentMark(tokenizer.vocabulary()), end = documentEnd(tokenizer.vocabulary());
  Predictor predictor(trainer.machine(), network, trainer.weights());
  std::vector<std::string> texts;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int32_t> tokens = beginningOf(data.validation(i * data.validationSequences() / count, 1), given);
    if (tokens.empty())
      continue;
    std::string text = tokenizer.decode(tokens) + "→";
    for (int64_t made = 0; made < mostMade && std::ssize(tokens) < context; ++made) {
      std::vector<float> logits = predictor.logitsAfter(tokens);
      logits.resize(tokenizer.size()); // those behind are padding
      tokens.push_back(static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
      if (tokens.back() == mark || tokens.back() == end)
        break;
      text += tokenizer.decode({&tokens.back(), 1});
    }
    texts.push_back(text);
  }
  return texts;
}

} // namespace kiln
