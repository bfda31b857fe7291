// Progress of a run: a bar that is redrawn on a terminal, plain lines elsewhere.

#pragma once

#include "models/observe/live_curve.h"
#include "models/train/log.h"

#include <chrono>
#include <cstdio>
#include <optional>

namespace kiln {

/// `3:07`, `1:02:45`.
std::string clockText(double seconds);
/// A bar of `width` characters with the share `done` (0 … 1) filled.
std::string barText(double done, int width);

/// Prints a run's progress. Output that cannot be written is lost; the run continues.
class Progress {
public:
  /// Steps go from `first` to `last`; `terminal` says whether the output can be redrawn. Without output nothing is
  /// printed.
  Progress(int64_t first, int64_t last, bool terminal, std::FILE *out = stdout);
  ~Progress();

  /// From now on also draws the losses so far as a curve: below the bar on a terminal, and in any case at the end.
  void showCurve() { curve.emplace(); }
  void show(const StepRow &row);
  /// Prints a line of text above the bar.
  void note(const std::string &text);

private:
  std::string text(const StepRow &row) const;
  void put(const std::string &text);
  void clear();

  int64_t first, last;
  bool terminal, drawn = false, hasCurve = false; // on the terminal now: the bar, a curve under it
  std::optional<LiveCurve> curve;
  std::FILE *out;
  std::chrono::steady_clock::time_point begin, shown;
};

} // namespace kiln
