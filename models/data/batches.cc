// Drawing training sequences and laying out validation sequences.

#include "models/data/batches.h"

#include <algorithm>

namespace kiln {

TrainBatches::TrainBatches(const std::vector<uint8_t> &text, int64_t context, uint64_t seed)
    : text(text), context(context), random(seed, Stream::batches) {
  // One less than fits where the shift could push the last sequence over the end.
  perPass = std::max<int64_t>(1, (static_cast<int64_t>(text.size()) - 1 - (context - 1)) / context);
}

void TrainBatches::drawPass(int64_t pass) {
  const uint64_t counter = static_cast<uint64_t>(pass) << 32;
  const int64_t room = static_cast<int64_t>(text.size()) - 1 - perPass * context;
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
  for (int64_t n = first; n < first + count; ++n) {
    if (n / perPass != drawn)
      drawPass(n / perPass);
    const auto begin = text.begin() + begins[n % perPass];
    batch.tokens.insert(batch.tokens.end(), begin, begin + context);
    batch.targets.insert(batch.targets.end(), begin + 1, begin + context + 1);
  }
  return batch;
}

int64_t validationSequences(int64_t bytes, int64_t context) { return (bytes - 1 + context - 1) / context; }

Batch validationBatch(const std::vector<uint8_t> &text, int64_t context, int64_t first, int64_t count) {
  Batch batch;
  batch.tokens.assign(count * context, 0);
  batch.targets.assign(count * context, ignoredTarget);
  const int64_t last = static_cast<int64_t>(text.size()) - 1;
  for (int64_t i = 0; i < count * context; ++i) {
    const int64_t at = first * context + i;
    if (at < last) {
      batch.tokens[i] = text[at];
      batch.targets[i] = text[at + 1];
    }
  }
  return batch;
}

} // namespace kiln
