// `gpt2 test`: whether two devices, or a device and llm.c, compute the same, from the forward pass to the gradient of
// every tensor.

#pragma once

#include "models/gpt2/options.h"

namespace kiln {

/// Prints a table of what differs by how much, relative to its norm, beside the bound that rounding has. Returns
/// whether all of it is within. Throws Error.
bool compare(const TestOptions &options);

} // namespace kiln
