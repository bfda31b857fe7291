// `gpt2 train`: which model a run trains, what it begins with, and on which text.

#pragma once

#include "models/gpt2/options.h"

namespace kiln {

/// Trains as the options say (models/train/loop.h), alone in its folder. Throws Error.
void train(const TrainOptions &options);

} // namespace kiln
