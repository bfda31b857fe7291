// `gpt2 sample`: generates text with a trained model.

#pragma once

#include "models/gpt2/options.h"

namespace kiln {

/// Prints the prompt and its continuation. Throws Error.
void sample(const SampleOptions &options);

} // namespace kiln
