// `gpt2 sample`.

#include "models/generate/sample_command.h"
#include "models/gpt2/commands.h"
#include "models/gpt2/network.h"
#include "models/gpt2/pretrained.h"
#include "models/tokens/tokenizer.h"

namespace kiln {

/// End-of-document tokens, if the vocabulary has any.
static std::vector<int32_t> findEnds(const Vocabulary &vocabulary) {
  std::vector<int32_t> ends;
  for (const std::optional<int32_t> token : {documentMark(vocabulary), documentEnd(vocabulary)})
    if (token)
      ends.push_back(*token);
  return ends;
}

void sample(const SampleOptions &options) {
  GenerationOptions writing = options.writing;
  if (!writing.prompt && !writing.promptFile)
    writing.prompt = "\n";
  const TrainedModel read = readTrained(options.folder, options.dtype);
  verifyTokens(read.config, read.vocabulary);
  const Network network(read.config);
  const std::shared_ptr<Device> device = openDevice(options.machine);
  const Tensor weights = uploaded(device, network, read.weights);
  const Tokenizer tokenizer(read.vocabulary.value_or(byteVocabulary()));
  write(
      "gpt2", [&](const Generator::Options &texts) { return Generator(device, network, weights, texts); },
      {.encode = [&](const std::string &text) { return tokenizer.encode(text, /*specials=*/true); },
       .decode = [&](std::span<const int32_t> tokens) { return tokenizer.decode(tokens); },
       .size = tokenizer.size(),
       .ends = findEnds(tokenizer.vocabulary())},
      writing);
}

} // namespace kiln
