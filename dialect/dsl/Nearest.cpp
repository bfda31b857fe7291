// Finds the nearest name by edit distance; a transposition of adjacent letters counts as one edit.

#include "dialect/dsl/Nearest.h"

#include <algorithm>
#include <numeric>

namespace kiln {

static size_t slips(const std::string &a, const std::string &b) {
  // For i − 2, i − 1 and i letters of a.
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

std::optional<std::string> nearest(const std::string &word, const std::vector<std::string> &candidates) {
  const size_t letters = word.size() - std::min(word.size(), word.find_first_not_of('-'));
  if (letters < 2)
    return {};
  std::optional<std::string> best;
  size_t least = std::max<size_t>(1, letters / 3) + 1;
  for (const std::string &candidate : candidates)
    if (const size_t distance = slips(word, candidate); distance < least) {
      least = distance;
      best = candidate;
    }
  return best;
}

std::string didYouMean(const std::string &word, const std::vector<std::string> &candidates) {
  const std::optional<std::string> guess = nearest(word, candidates);
  return guess ? "; did you mean '" + *guess + "'?" : "";
}

} // namespace kiln
