// Generates all texts in one batch.

#include "models/gpt2/greedy.h"
#include "models/data/batches.h"
#include "models/generate/generator.h"

#include <algorithm>

namespace kiln {

/// The maximum number of tokens of the prompt, and of generated tokens.
static constexpr int64_t mostGiven = 12, mostMade = 32;

/// The first tokens of a sequence, at most `most`, up to the sequence's end.
static std::vector<int32_t> beginningOf(const HostBatch &batch, int64_t most) {
  const std::vector<int32_t> tokens = batch.at("tokens").numbers<int32_t>(),
                             targets = batch.at("targets").numbers<int32_t>();
  std::vector<int32_t> given;
  for (size_t i = 0; i < tokens.size() && std::ssize(given) < most && targets[i] != ignoredTarget; ++i)
    given.push_back(tokens[i]);
  return given;
}

namespace {
/// A text in progress.
struct Growing {
  std::string text;
  int64_t length;
  bool isFinished;
};
} // namespace

std::vector<std::string> greedyTexts(Trainer &trainer, const Network &network, const TrainData &data,
                                     const Tokenizer &tokenizer, int64_t count) {
  const int64_t context = network.config().context, given = std::min(mostGiven, cdiv(context, 2));
  const std::optional<int32_t> mark = documentMark(tokenizer.vocabulary()), end = documentEnd(tokenizer.vocabulary());
  Generator generator(trainer.machine(), network, trainer.weights(), {.sequences = count});
  std::vector<Growing> texts;
  for (int64_t i = 0; i < count; ++i) {
    const std::vector<int32_t> tokens = beginningOf(data.validation(i * data.validationSequences() / count, 1), given);
    const int64_t length = std::ssize(tokens);
    texts.push_back({tokenizer.decode(tokens) + "→", length, length == 0 || length >= context});
    generator.append(i, tokens.empty() ? std::vector<int32_t>{0} : tokens); // a text without a prompt is skipped
  }
  for (int64_t made = 0; made < mostMade; ++made) {
    const std::vector<std::vector<float>> logits = generator.next();
    for (int64_t i = 0; i < count; ++i) {
      Growing &text = texts[i];
      if (text.isFinished)
        continue;
      const auto first = logits[i].begin(), last = first + tokenizer.size(); // the rest is padding
      const auto token = static_cast<int32_t>(std::max_element(first, last) - first);
      text.isFinished = token == mark || token == end || ++text.length >= context;
      if (token != mark && token != end)
        text.text += tokenizer.decode({&token, 1});
      if (!text.isFinished)
        generator.append(i, {&token, 1});
    }
  }
  std::vector<std::string> all;
  for (const Growing &text : texts)
    if (text.length > 0)
      all.push_back(text.text);
  return all;
}

} // namespace kiln
