// `gpt2 train`: chooses model, initial weights and data of a run.

#pragma once

#include "models/gpt2/options.h"

namespace kiln {

/// Trains as the options say (models/train/loop.h), with a lock on the run's folder. Throws Error.
void train(const TrainOptions &options);

} // namespace kiln
