// A random program for a batch of examples: vmap of its kernel, possibly nested, compared with a launch for each
// example.

#pragma once

#include "test/fuzz/run.h"

namespace kiln::fuzz {

/// The first few elements that one launch of vmap's kernel computes differently from a launch for each example on the
/// same device, one a line; empty if there are none. The comparison is exact on a CPU, and by the language's bounds
/// elsewhere. A program has no batch if a view has no dimension left. The number of examples, their dimensions and the
/// shared arguments are drawn; they follow from the program's seed and number.
std::optional<std::string> compareBatch(const Program &program, const std::shared_ptr<Device> &device);

} // namespace kiln::fuzz
