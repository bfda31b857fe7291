// `gpt2 profile`: shows where the time of a training step goes.

#pragma once

#include "models/gpt2/options.h"

namespace kiln {

/// Runs steps of a model with random weights on random tokens, prints their times by kernel and label, and writes a
/// trace. A first step, which compiles, is excluded. Throws Error.
void profile(const ProfileOptions &options);

} // namespace kiln
