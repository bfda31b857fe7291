// From options to text.

#include "models/gpt2/sample.h"
#include "models/generate/predictor.h"
#include "models/gpt2/network.h"
#include "models/gpt2/trained_model.h"
#include "models/tokens/tokenizer.h"
#include "runtime/Streams.h"

namespace kiln {

void sample(const SampleOptions &options) {
  if (options.prompt.empty())
    throw Error("expected a prompt of at least one byte, but got an empty one");
  verify(options.sampling, "token");
  const TrainedModel read = readTrained(options.folder, options.dtype);
  const Network network(read.config);
  Predictor predictor(openDevice(options.machine), network, read.weights);
  const Tokenizer tokenizer(read.vocabulary.value_or(byteVocabulary()));
  writeResult(options.prompt);
  const auto logitsAfter = [&](const std::vector<int32_t> &tokens) {
    std::vector<float> logits = predictor.logitsAfterLast(tokens);
    logits.resize(tokenizer.size()); // those behind are padding
    return logits;
  };
  goOn(options.sampling, tokenizer.encode(options.prompt, /*specials=*/true), logitsAfter,
       [&](int32_t token) { writeResult(tokenizer.decode({&token, 1})); });
  writeResult("\n");
}

} // namespace kiln
