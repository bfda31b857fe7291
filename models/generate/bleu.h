// BLEU (Papineni et al. 2002) of a corpus, as sacrebleu has it: how many of the runs of one to four words of what was
// made are in the references, and how long it is beside these.

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace kiln {

/// What words are: what stands between spaces, or what mteval-v13a makes of a line, which separates punctuation.
enum class BleuWords { spaces, v13a };

struct BleuOptions {
  BleuWords words = BleuWords::v13a;
  bool lowerCase = true;
};

struct Bleu {
  double score = 0;                        // 0 to 100
  std::array<double, 4> precisions = {};   // of runs of 1 to 4 words, in percent, smoothed as the score's
  double brevity = 0;                      // the factor for a corpus that is too short
  int64_t length = 0, referenceLength = 0; // words
};

/// The words of a line.
std::vector<std::string> bleuWords(const std::string &line, const BleuOptions &options);
/// Of lines and one reference for each; of a precision of 0 its k-th occurrence counts as one half to the k of a match.
/// A corpus without words has 0. Throws Error unless there are as many references as lines.
Bleu bleuOf(const std::vector<std::string> &lines, const std::vector<std::string> &references,
            const BleuOptions &options = {});

} // namespace kiln
