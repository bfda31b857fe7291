// The commands of `bytelm`. Each throws Error.

#pragma once

#include "models/bytelm/options.h"

namespace kiln::bytelm {

/// Trains a model, from the first step or from a run's newest checkpoint.
void train(const TrainOptions &options);
/// Prints the prompt and its continuation.
void sample(const SampleOptions &options);
/// Prints each parameter with its size, and the memory of a step.
void info(const InfoOptions &options);

} // namespace kiln::bytelm
