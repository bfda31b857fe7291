// `gpt2 info`: the cost of a model, before anything is allocated.

#pragma once

#include "models/gpt2/options.h"

namespace kiln {

/// Prints parameters, the memory plan and the FLOPs of a step.
void info(const InfoOptions &options);

} // namespace kiln
