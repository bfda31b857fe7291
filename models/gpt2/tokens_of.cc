// Finds a model's tokenizer.

#include "models/gpt2/tokens_of.h"
#include "models/tokens/files.h"

#include <filesystem>
#include <fmt/format.h>

namespace kiln {

namespace fs = std::filesystem;

std::optional<Vocabulary> vocabularyBeside(const Pretrained &model) {
  if (!model.folder)
    return {};
  if (fs::exists(fs::path(*model.folder) / "spiece.model"))
    throw Error(fmt::format("expected a byte-pair tokenizer (tokenizer.json, or vocab.json and merges.txt), but "
                            "'{}/spiece.model' is another kind",
                            *model.folder));
  const bool isCheckpoint = fs::exists(fs::path(*model.folder) / "training.json");
  for (const std::string &folder : {*model.folder, fs::absolute(*model.folder).parent_path().string()})
    if ((folder == *model.folder || isCheckpoint) && hasVocabulary(folder))
      return readVocabulary(folder);
  return {};
}

DocumentMarks documentMarks(const std::optional<Vocabulary> &vocabulary) {
  const Vocabulary known = vocabulary.value_or(Vocabulary());
  const std::optional<int32_t> begin = documentMark(known);
  if (!begin)
    throw Error(fmt::format("the tokenizer does not say which token begins a document; expected <|endoftext|>, <s>, or "
                            "exactly one special token, but got {} special tokens",
                            known.specials.size()));
  return {*begin, documentEnd(known)};
}

void setBatching(LanguageSource &source, Gpt2Config &config, const TrainSettings &settings,
                 const std::optional<Vocabulary> &vocabulary) {
  const bool isPacked = settings.batching == Batching::packed;
  config.givesRanges = isPacked;
  config.givesPositions = isPacked && settings.positions == Positions::restart;
  if (settings.batching != Batching::stream)
    source.documents = documentMarks(vocabulary);
  source.pack = isPacked ? settings.pack : 0;
  source.givesPlaces = config.givesPositions;
}

void verifyTokens(const Gpt2Config &config, const std::optional<Vocabulary> &vocabulary) {
  if (!vocabulary)
    return verifyBytes(config);
  if (config.vocab < vocabulary->size())
    throw Error(fmt::format("expected a vocabulary of at least {}, the size of the tokenizer, but got {}",
                            vocabulary->size(), config.vocab));
}

} // namespace kiln
