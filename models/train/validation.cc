// Sums over batches.

#include "models/train/validation.h"

#include <algorithm>

namespace kiln {

std::optional<Validation> validate(Trainer &trainer, const TrainData &data, int64_t batch, int64_t most,
                                   const std::function<bool()> &stop, Collective &ranks) {
  const int64_t batches = ceildiv(data.validationSequences(), batch);
  const int64_t taken = most > 0 ? std::min(most, batches) : batches;
  Validation sums;
  int64_t targets = 0;
  bool stopped = false;
  for (int64_t i = 0; i < taken; ++i) {
    if ((stopped = stop()))
      break;
    const int64_t first = i * batches / taken * batch; // below 2⁶³: there are at most 2²⁰ in each
    targets += data.validationTargets(first, batch);
    if (i % ranks.size() != ranks.rank())
      continue;
    const Trainer::Sums some = trainer.sums(data.validation(first, batch));
    sums.loss += some.losses;
    sums.accuracy += some.hits;
  }
  if (ranks.any(stopped))
    return {};
  sums = {ranks.sum(sums.loss), ranks.sum(sums.accuracy)};
  const auto count = static_cast<double>(targets);
  return Validation{sums.loss / count, sums.accuracy / count};
}

} // namespace kiln
