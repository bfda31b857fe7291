// Stateless random numbers.

#include "models/gpt2/random_tokens.h"
#include "models/data/batches.h"
#include "models/data/random.h"

namespace kiln {

HostBatch randomTokens(const Gpt2Config &config, int64_t count, uint64_t seed) {
  const Random random(seed, Stream::sampling);
  const int64_t size = count * config.context;
  std::vector<int32_t> tokens, targets;
  for (int64_t i = 0; i < size; ++i) {
    tokens.push_back(static_cast<int32_t>(random.below(config.vocab, i)));
    targets.push_back(i % 7 == 6 ? ignoredTarget : static_cast<int32_t>(random.below(config.vocab, size + i)));
  }
  return languageBatch(tokens, targets);
}

} // namespace kiln
