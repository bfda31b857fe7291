// BLEU (Papineni et al. 2002) of a corpus, as sacrebleu computes it: the precision of 1-grams to 4-grams and a brevity
// penalty.

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace kiln {

/// Tokenization: words between spaces, or mteval-v13a, which separates punctuation.
enum class BleuWords { spaces, v13a };

struct BleuOptions {
  BleuWords words = BleuWords::v13a;
  bool lowerCase = true;
};

struct Bleu {
  double score = 0;                        // 0 to 100
  std::array<double, 4> precisions = {};   // of 1-grams to 4-grams, in percent, smoothed as for the score
  double brevity = 0;                      // brevity penalty
  int64_t length = 0, referenceLength = 0; // in words
};

/// The words of a line.
std::vector<std::string> bleuWords(const std::string &line, const BleuOptions &options);
/// BLEU of lines with one reference each. The k-th precision of 0 counts as (1/2)^k of a match. A corpus without words
/// has 0. Throws Error unless there are as many references as lines.
Bleu computeBleu(const std::vector<std::string> &lines, const std::vector<std::string> &references,
                 const BleuOptions &options = {});

} // namespace kiln
