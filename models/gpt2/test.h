// `gpt2 test`: compares two devices, or a device and llm.c, from the forward pass to the gradient of every tensor.

#pragma once

#include "models/gpt2/options.h"

namespace kiln {

/// Prints a table of differences relative to the norm, each with its rounding bound. Returns whether all are within
/// their bounds. Throws Error.
bool compare(const TestOptions &options);

} // namespace kiln
