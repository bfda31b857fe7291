// Each stage of a compilation as a file for people to read (KILN_DUMP).

#pragma once

#include "lowering/Backend.h"

namespace kiln {

/// The folder that KILN_DUMP names, empty without it.
std::string dumpFolder();

/// Writes the stages of one compilation to `dumpFolder()/<kernel>-<key>/00-tile.mlir` and so on, in the order they
/// come. Throws Error (device) when it cannot.
lowering::StageSink dumpStages(const std::string &kernel, const std::string &key);

} // namespace kiln
