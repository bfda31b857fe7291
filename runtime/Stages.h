// Writes each stage of a compilation to a file (KILN_DUMP).

#pragma once

#include "lowering/Backend.h"

namespace kiln {

/// The folder that KILN_DUMP names; empty without it.
std::string dumpFolder();

/// Writes the stages of one compilation to `dumpFolder()/<kernel>-<key>/00-tile.mlir` and so on, in order. Throws Error
/// (device) on failure.
lowering::StageSink dumpStages(const std::string &kernel, const std::string &key);

} // namespace kiln
