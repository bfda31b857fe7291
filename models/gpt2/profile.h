// The command `gpt2 profile`: where the time of a training step goes.

#pragma once

#include "models/gpt2/options.h"

namespace kiln {

/// Takes steps of a model of random weights on random tokens, prints where their time went, and writes a trace. The
/// first step, which compiles, is not among them. Throws Error.
void profile(const ProfileOptions &options);

} // namespace kiln
