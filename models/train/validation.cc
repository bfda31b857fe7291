// Sums over batches.

#include "models/train/validation.h"

#include <algorithm>

namespace kiln {

std::optional<double> validationLoss(Trainer &trainer, const TrainData &data, int64_t batch, int64_t most,
                                     const std::function<bool()> &stop) {
  const int64_t batches = ceildiv(data.validationSequences(), batch);
  const int64_t taken = most > 0 ? std::min(most, batches) : batches;
  double sum = 0;
  int64_t targets = 0;
  for (int64_t i = 0; i < taken; ++i) {
    if (stop())
      return {};
    const int64_t first = i * batches / taken * batch; // below 2⁶³: there are at most 2²⁰ in each
    sum += trainer.lossSum(data.validation(first, batch));
    targets += data.validationTargets(first, batch);
  }
  return sum / static_cast<double>(targets);
}

} // namespace kiln
