// `gpt2 sample`: text from a trained model, a token at a time.

#pragma once

#include "models/gpt2/options.h"

namespace kiln {

/// Prints the prompt and what the model goes on with. Throws Error.
void sample(const SampleOptions &options);

} // namespace kiln
