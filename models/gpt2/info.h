// `gpt2 info`: what a model costs, before anything is allocated.

#pragma once

#include "models/gpt2/options.h"

namespace kiln {

/// Prints parameters, the memory plan and the operations of a step.
void info(const InfoOptions &options);

} // namespace kiln
