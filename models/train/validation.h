// The loss, and the accuracy, on what a run does not train on.

#pragma once

#include "models/parallel/collective.h"
#include "models/train/train_data.h"
#include "models/train/trainer.h"

#include <functional>

namespace kiln {

/// Means over targets.
struct Validation {
  double loss = 0;
  double accuracy = 0; // the share that the model holds likeliest
};

/// Over the targets of `most` batches to validate on, spread evenly over all there are and the same each time, or of
/// every one (0); nothing when `stop` said so before it was known. A batch is `parts` micro-batches of `batch`
/// sequences, so that the sequences are the same into however many parts it is cut. Each of `ranks` takes some of them,
/// and all know the means.
std::optional<Validation> validate(Trainer &trainer, const TrainData &data, int64_t batch, int64_t parts, int64_t most,
                                   const std::function<bool()> &stop, Collective &ranks = *aloneCollective());

} // namespace kiln
