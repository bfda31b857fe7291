// Averages losses into columns, and draws them as braille dots.

#include "models/observe/live_curve.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <optional>

namespace kiln {

void LiveCurve::add(double value) {
  if (sums.empty() || sums.back().count == length)
    sums.emplace_back();
  if (std::isfinite(value))
    sums.back().total += value;
  else
    sums.back().total = std::numeric_limits<double>::quiet_NaN(); // drawn without a dot
  ++sums.back().count;
  if (sums.size() < most || sums.back().count < length)
    return;
  for (size_t i = 0; i < most / 2; ++i)
    sums[i] = {sums[2 * i].total + sums[2 * i + 1].total, sums[2 * i].count + sums[2 * i + 1].count};
  sums.resize(most / 2);
  length *= 2;
}

/// A braille character; each bit is a dot.
static std::string braille(unsigned dots) {
  const unsigned code = 0x2800 + dots;
  return {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3f)),
          static_cast<char>(0x80 | (code & 0x3f))};
}

std::string LiveCurve::text(int width) const {
  const size_t columns = std::min(sums.size(), static_cast<size_t>(2 * width));
  std::vector<std::optional<double>> means(columns);
  double low = std::numeric_limits<double>::infinity(), high = -low, last = low;
  for (size_t c = 0; c < columns; ++c) {
    Sum sum;
    for (size_t i = c * sums.size() / columns; i < (c + 1) * sums.size() / columns; ++i)
      sum = {sum.total + sums[i].total, sum.count + sums[i].count};
    const double mean = sum.total / static_cast<double>(sum.count);
    if (!std::isfinite(mean))
      continue;
    means[c] = last = mean;
    low = std::min(low, mean);
    high = std::max(high, mean);
  }
  if (!(low <= high))
    return "";
  // By column, from top to bottom.
  static constexpr unsigned dots[2][4] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};
  std::string text = fmt::format("loss {:.4f} ", high);
  for (size_t c = 0; c < columns; c += 2) {
    unsigned character = 0;
    for (size_t side = 0; side < 2 && c + side < columns; ++side)
      if (const std::optional<double> &mean = means[c + side])
        character |= dots[side][high > low ? std::lround((high - *mean) / (high - low) * 3) : 3];
    text += braille(character);
  }
  return text + fmt::format(" {:.4f}", last);
}

} // namespace kiln
