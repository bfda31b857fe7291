// The tokenizer files next to a model.

#include "models/translate/run_tokens.h"
#include "models/tokens/files.h"

#include <filesystem>
#include <fmt/format.h>

namespace kiln::translate {

namespace fs = std::filesystem;

void writeRunTokens(const std::string &folder, const PairTokenizers &tokenizers) {
  for (const char *name : {"tokenizer.json", "vocab.json", "merges.txt"}) // left by an earlier run
    for (const fs::path &path : {fs::path(folder), fs::path(folder) / "source"})
      fs::remove(path / name);
  writeVocabulary(folder, tokenizers.target.vocabulary());
  if (tokenizers.source.vocabulary() != tokenizers.target.vocabulary())
    writeVocabulary((fs::path(folder) / "source").string(), tokenizers.source.vocabulary());
}

PairTokenizers readRunTokens(const std::string &folder) {
  const fs::path here = folder, above = fs::absolute(here).parent_path();
  const bool isCheckpoint = !hasVocabulary(folder) && fs::exists(here / "training.json");
  const fs::path run = isCheckpoint ? above : here;
  if (!hasVocabulary(run.string()))
    throw Error(fmt::format("expected the tokenizer of a run in '{}', but there is none", run.string()));
  const Tokenizer target(readVocabulary(run.string()));
  const std::string source = (run / "source").string();
  return {hasVocabulary(source) ? Tokenizer(readVocabulary(source)) : target, target};
}

} // namespace kiln::translate
