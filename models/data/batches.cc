// Drawing training sequences and laying out validation sequences.

#include "models/data/batches.h"

#include <algorithm>

namespace kiln {

TrainBatches::TrainBatches(std::shared_ptr<const TokenStream> given, int64_t context, uint64_t seed)
    : text(std::move(given)), context(context), random(seed, Stream::batches) {
  // One less than fits where the shift could push the last sequence over the end.
  perPass = std::max<int64_t>(1, (text->size() - 1 - (context - 1)) / context);
}

void TrainBatches::drawPass(int64_t pass) {
  const uint64_t counter = static_cast<uint64_t>(pass) << 32;
  const int64_t room = text->size() - 1 - perPass * context;
  const int64_t shift = random.below(room + 1, counter);
  begins.resize(perPass);
  for (int64_t i = 0; i < perPass; ++i)
    begins[i] = shift + i * context;
  for (int64_t i = perPass - 1; i > 0; --i) // Fisher and Yates
    std::swap(begins[i], begins[random.below(i + 1, counter + i)]);
  drawn = pass;
}

Batch TrainBatches::sequences(int64_t first, int64_t count) {
  Batch batch;
  batch.tokens.reserve(count * context);
  batch.targets.reserve(count * context);
  std::vector<int32_t> sequence(context + 1);
  for (int64_t n = first; n < first + count; ++n) {
    if (n / perPass != drawn)
      drawPass(n / perPass);
    text->read(begins[n % perPass], context + 1, sequence.data());
    batch.tokens.insert(batch.tokens.end(), sequence.begin(), sequence.end() - 1);
    batch.targets.insert(batch.targets.end(), sequence.begin() + 1, sequence.end());
  }
  return batch;
}

int64_t validationSequences(int64_t tokens, int64_t context) { return (tokens - 1 + context - 1) / context; }

Batch validationBatch(const TokenStream &text, int64_t context, int64_t first, int64_t count) {
  Batch batch;
  batch.tokens.assign(count * context, 0);
  batch.targets.assign(count * context, ignoredTarget);
  const int64_t begin = first * context, there = std::clamp<int64_t>(text.size() - 1 - begin, 0, count * context);
  if (there == 0)
    return batch;
  text.read(begin, there, batch.tokens.data());
  text.read(begin + 1, there, batch.targets.data());
  return batch;
}

} // namespace kiln
