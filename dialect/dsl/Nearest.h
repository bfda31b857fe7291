// Suggestions for misspelt words in messages: flags, commands, kernels, config fields.
//
//     didYouMean("--stepz", {"--steps", "--data"})       "; did you mean '--steps'?"
//     didYouMean("--batch-size", {"--data"})             ""
//     unknownName("device", "cpuu", {"cpu"})             "unknown device 'cpuu'; did you mean 'cpu'? (known: cpu)"

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace kiln {

/// The candidate that is a synonym of `word` (`f16` for `float16`). Otherwise the shortest that begins with it
/// (`simulator:sm_90a` for `sm_90`). Otherwise the first with the smallest edit distance; nothing if none is near. An
/// edit inserts, removes or replaces a letter, or swaps two neighbours. The distance is at most n / 3 for a word of n
/// letters, and at most 1 for short words of two letters or more. The dashes of a flag do not count.
std::optional<std::string> nearest(const std::string &word, const std::vector<std::string> &candidates);

/// The end of a message about an unknown `word`: `; did you mean '--steps'?`, or nothing if no candidate is near.
std::string didYouMean(const std::string &word, const std::vector<std::string> &candidates);

/// The message about a name of some kind, such as a device, that is not among `known`. The hint follows the name; by
/// default it is didYouMean().
std::string unknownName(const std::string &kind, const std::string &name, const std::vector<std::string> &known);
std::string unknownName(const std::string &kind, const std::string &name, const std::vector<std::string> &known,
                        const std::string &hint);

} // namespace kiln
