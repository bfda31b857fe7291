// Masks of attention on the host: a check of dropout, broadcasting, and ranges of queries from ranges of keys.

#include "kernels/attention_plan.h"

#include <string>

namespace kiln {

void expectWeights(const char *plan, const Dropout &dropout, const AttentionExtents &s) {
  expectDropout(plan, dropout, s.Tq);
  if (dropout.rngState && dropout.maxLength < s.Tk)
    throw Error("'" + std::string(plan) + "': expected at most " + std::to_string(dropout.maxLength) +
                " keys, the longest sequence that 'dropout' allows, but got " + std::to_string(s.Tk));
}

TensorRef wholeMask(const AttentionMask &mask, const AttentionExtents &extents, const TensorRef &other) {
  if (!mask.mask)
    return other;
  TensorRef whole = *mask.mask;
  const int64_t wanted[] = {extents.B, extents.H};
  for (const int axis : {0, 1})
    if (whole.extents[axis] != wanted[axis]) {
      whole.extents[axis] = wanted[axis];
      whole.strides[axis] = 0;
    }
  return whole;
}

/// Throws Error unless the ranges of one sequence, of Tq queries, are ranges of Tk keys that do not decrease.
static void expectRanges(const int32_t *ranges, int64_t Tq, int64_t Tk) {
  const auto fail = [](int64_t row, const std::string &expected, const int32_t *range) {
    throw Error("'queryRanges': expected the range of row " + std::to_string(row) + " " + expected + ", but got " +
                std::to_string(range[0]) + " to " + std::to_string(range[1]));
  };
  for (int64_t i = 0; i < Tq; ++i) {
    const int32_t *own = ranges + 2 * i;
    if (own[0] < 0 || own[0] > own[1] || own[1] > Tk)
      fail(i, "to lie within 0 to " + std::to_string(Tk) + " and not to end before it begins", own);
    if (i > 0 && (own[0] < own[-2] || own[1] < own[-1]))
      fail(i,
           "not to begin or end before the range of the row above, " + std::to_string(own[-2]) + " to " +
               std::to_string(own[-1]),
           own);
  }
}

std::vector<int32_t> queryRanges(const std::vector<int32_t> &ranges, int64_t Tq, int64_t Tk) {
  if (Tq < 1 || static_cast<int64_t>(ranges.size()) % (2 * Tq) != 0)
    throw Error("'queryRanges': expected two numbers for each of " + std::to_string(Tq) + " rows, but got " +
                std::to_string(ranges.size()));
  std::vector<int32_t> columns;
  for (const int32_t *own = ranges.data(); own != ranges.data() + ranges.size(); own += 2 * Tq) {
    expectRanges(own, Tq, Tk);
    // Neither bound decreases. So the queries whose range has begun at or before key j come first, and among them those
    // whose range has ended.
    int32_t ended = 0, begun = 0;
    for (int64_t j = 0; j < Tk; ++j) {
      while (ended < Tq && own[2 * ended + 1] <= j)
        ++ended;
      while (begun < Tq && own[2 * begun] <= j)
        ++begun;
      columns.push_back(ended);
      columns.push_back(begun);
    }
  }
  return columns;
}

} // namespace kiln
