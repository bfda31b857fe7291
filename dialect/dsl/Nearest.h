// The one place that guesses what a misspelt word was meant to be: flags, commands, kernels, config fields.
//
//     didYouMean("--stepz", {"--steps", "--data"})     "; did you mean '--steps'?"
//     didYouMean("--batch-size", {"--data"})           ""

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace kiln {

/// The candidate that `word` was probably meant to be: the first of those that the fewest slips make it into. A slip is
/// a letter too many, one that is missing or wrong, or two that changed places. A word of n letters, the dashes of a
/// flag apart, may have n / 3 slips, and one in any case if it has two letters or more; nothing when no candidate is
/// that near.
std::optional<std::string> nearest(const std::string &word, const std::vector<std::string> &candidates);

/// The end of a message about an unknown `word`: `; did you mean '--steps'?`, or nothing when no candidate is near.
std::string didYouMean(const std::string &word, const std::vector<std::string> &candidates);

} // namespace kiln
