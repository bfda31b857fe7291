// Sums losses over batches.

#include "models/train/validation.h"

#include <algorithm>

namespace kiln {

std::optional<Validation> validate(Trainer &trainer, const TrainData &data, int64_t batch, int64_t parts, int64_t most,
                                   const std::function<bool()> &stop, Collective &ranks) {
  const int64_t all = data.validationSequences(), whole = batch * parts, batches = cdiv(all, whole);
  const int64_t taken = most > 0 ? std::min(most, batches) : batches;
  Validation sums;
  int64_t targets = 0;
  bool stopped = false;
  for (int64_t i = 0; i < taken * parts && !stopped; ++i) {
    // Below 2⁶³, because each batch has at most 2²⁰.
    const int64_t first = i / parts * batches / taken * whole + i % parts * batch;
    if (first >= all)
      continue;
    stopped = stop();
    targets += data.validationTargets(first, batch);
    if (stopped || i % ranks.size() != ranks.rank())
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
