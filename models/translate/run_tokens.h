// The tokenizers of a run, which its folder keeps: one of both sides, or `target` in the folder and `source` below it.

#pragma once

#include "models/translate/pair_data.h"

namespace kiln::translate {

/// Puts them into a new run's folder, in the place of those that are there.
void writeRunTokens(const std::string &folder, const PairTokenizers &tokenizers);
/// Those of a run's folder, or of a checkpoint in one. Throws Error where there are none.
PairTokenizers readRunTokens(const std::string &folder);

} // namespace kiln::translate
