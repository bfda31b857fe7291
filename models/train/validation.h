// Loss and accuracy on the validation set.

#pragma once

#include "models/parallel/collective.h"
#include "models/train/train_data.h"
#include "models/train/trainer.h"

#include <functional>

namespace kiln {

/// Means over targets.
struct Validation {
  double loss = 0;
  double accuracy = 0; // the share that the model ranks first
};

/// Validates on the targets of `most` batches, evenly spread and equal each time, or of all batches (0). Returns
/// nothing if `stop` asked for an early end. A batch is `parts` micro-batches of `batch` sequences, so that the
/// sequences do not depend on the cut. Each of `ranks` takes some of them, and all know the means.
std::optional<Validation> validate(Trainer &trainer, const TrainData &data, int64_t batch, int64_t parts, int64_t most,
                                   const std::function<bool()> &stop, Collective &ranks = *aloneCollective());

} // namespace kiln
