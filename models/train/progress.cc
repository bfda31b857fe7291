// Draws the progress bar and the curve below it.

#include "models/train/progress.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <optional>

namespace kiln {

//===-- The curve -----------------------------------------------------------------------------------------------===//

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

//===-- The bar -------------------------------------------------------------------------------------------------===//

using Clock = std::chrono::steady_clock;

std::string clockText(double seconds) {
  const int64_t s = std::max<int64_t>(0, std::llround(seconds));
  return s < 3600 ? fmt::format("{}:{:02}", s / 60, s % 60)
                  : fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

std::string barText(double done, int width) {
  static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int filled = static_cast<int>(std::clamp(done, 0.0, 1.0) * width * 8);
  std::string bar;
  for (int i = 0; i < filled / 8; ++i)
    bar += "█";
  bar += eighths[filled % 8];
  for (int i = (filled + 7) / 8; i < width; ++i)
    bar += "·";
  return bar;
}

Progress::Progress(int64_t first, int64_t last, bool terminal, std::FILE *out)
    : first(first), last(last), terminal(terminal), out(out), begin(Clock::now()), shown(begin) {}

/// Widths of the bar and the curve, in characters.
static constexpr int barWidth = 24, curveWidth = 48;

Progress::~Progress() {
  if (drawn)
    std::fputc('\n', out);
  const std::string text = curve && !hasCurve ? curve->text(curveWidth) : "";
  if (!text.empty())
    put(text + "\n");
}

std::string Progress::text(const StepRow &row) const {
  std::string text = fmt::format("step {}/{}  loss {:.4f}", row.step, last, row.number("loss").value_or(NAN));
  if (const std::optional<double> validation = row.number("val_loss"))
    text += fmt::format("  val {:.4f}", *validation);
  if (const std::optional<double> rate = row.number("tokens_per_s"))
    text += fmt::format("  {:.1f}k tokens/s", *rate / 1000);
  if (const std::optional<double> share = row.number("peak_share"))
    text += fmt::format("  {:.0f} % of measured peak", 100 * *share);
  if (row.step <= first) // no step has been taken: the row is of the run that is resumed
    return text;
  const double elapsed = std::chrono::duration<double>(Clock::now() - begin).count(),
               left = elapsed / static_cast<double>(row.step - first) * static_cast<double>(last - row.step);
  return text + fmt::format("  {} left", clockText(left));
}

void Progress::put(const std::string &text) {
  if (out)
    std::fputs(text.c_str(), out);
}

void Progress::clear() {
  if (drawn)
    put(hasCurve ? "\r\x1b[K\x1b[A\x1b[K" : "\r\x1b[K");
  drawn = hasCurve = false;
}

void Progress::show(const StepRow &row) {
  if (curve)
    curve->add(row.number("loss").value_or(NAN));
  const Clock::time_point now = Clock::now();
  if (row.step <= first)
    begin = now;
  const double since = std::chrono::duration<double>(now - shown).count();
  const bool evaluated = row.number("val_loss").has_value();
  const bool due = row.step == last || row.step == first + 1 || evaluated;
  if (!out || (!due && since < (terminal ? 0.1 : 5.0)))
    return;
  shown = now;
  if (!terminal) {
    put(text(row) + "\n");
  } else {
    clear();
    if (evaluated)
      put(text(row) + "\n");
    put(barText(static_cast<double>(row.step) / static_cast<double>(last), barWidth) + " " + text(row));
    drawn = true;
    const std::string line = curve ? curve->text(curveWidth) : "";
    if (!line.empty()) {
      put("\n" + line);
      hasCurve = true;
    }
  }
  std::fflush(out);
}

void Progress::note(const std::string &line) {
  if (!out)
    return;
  clear();
  put(line + "\n");
  std::fflush(out);
}

} // namespace kiln
