// The tokenizers of a run, kept in its folder: one for both sides, or `target` in the folder and `source` below it.

#pragma once

#include "models/translate/pair_data.h"

namespace kiln::translate {

/// Writes them into a new run's folder, and replaces older ones.
void writeRunTokens(const std::string &folder, const PairTokenizers &tokenizers);
/// Reads those of a run's folder, or of a checkpoint in one. Throws Error if there are none.
PairTokenizers readRunTokens(const std::string &folder);

} // namespace kiln::translate
