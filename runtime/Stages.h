// Files for people to read about a compilation: each stage's text (KILN_DUMP), and the reproducer of one that failed.

#pragma once

#include "runtime/Device.h"

namespace kiln {

/// The folder that KILN_DUMP names, empty without it.
std::string dumpFolder();

/// Writes the stages of one compilation to `dumpFolder()/<kernel>-<key>/00-tile.mlir` and so on, in the order they come.
/// Throws Error (device) when it cannot.
StageSink dumpStages(const std::string &kernel, const std::string &key);

/// Writes a module whose compilation failed to a file of its own and returns the line that compiles it again.
std::string writeReproducer(const std::string &kernel, const std::string &key, const std::string &module,
                            const std::string &device);

} // namespace kiln
