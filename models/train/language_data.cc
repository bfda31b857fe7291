// A text's sequences as inputs.

#include "models/train/text_data.h"

#include <algorithm>

namespace kiln {

TextData::TextData(const std::string &path, int64_t context, uint64_t seed)
    : path(path), context(context), text(readText(path, context)), batches(text.train, context, seed) {}

DataIdentity TextData::identity() const { return {path, std::ssize(text.train), hashOf(text.train)}; }

static HostBatch inputsOf(const Batch &batch) { return languageBatch(batch.tokens, batch.targets); }

HostBatch TextData::training(int64_t first, int64_t count) { return inputsOf(batches.sequences(first, count)); }

int64_t TextData::trainingTargets(int64_t, int64_t count) const { return count * context; }

int64_t TextData::validationSequences() const {
  return kiln::validationSequences(std::ssize(text.validation), context);
}

int64_t TextData::validationTargets(int64_t first, int64_t count) const { // every byte but the first is one
  return std::clamp<int64_t>(std::ssize(text.validation) - 1 - first * context, 0, count * context);
}

HostBatch TextData::validation(int64_t first, int64_t count) const {
  return inputsOf(validationBatch(text.validation, context, first, count));
}

} // namespace kiln
