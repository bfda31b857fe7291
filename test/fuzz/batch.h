// A random program for a batch of examples: vmap of its kernel, which may nest, beside a launch for each example.

#pragma once

#include "test/fuzz/run.h"

namespace kiln::fuzz {

/// What one launch of vmap's kernel leaves in memory otherwise than a launch for each example on the same device, the
/// first few elements, one a line; empty when nothing: to the bit on a CPU, elsewhere as the language says. Nothing
/// where the program has no batch, since a view has no dimension left. How many examples there are, along which
/// dimensions they lie and what they have together is drawn, and follows from the program's seed and number.
std::optional<std::string> compareBatch(const Program &program, const std::shared_ptr<Device> &device);

} // namespace kiln::fuzz
