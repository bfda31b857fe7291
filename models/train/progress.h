// Progress of a run: a bar that is redrawn on a terminal, plain lines elsewhere; and the losses so far as a line of
// text.

#pragma once

#include "models/train/log.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

//===-- The curve -----------------------------------------------------------------------------------------------===//
// A loss curve in one line of text, of braille characters: two columns of four dots a character.

class LiveCurve {
public:
  void add(double value);
  /// `loss 5.5598 ⡇⠱⣀ 1.7108`: the highest and the last mean, and between them the values so far as `width` · 2 means
  /// over equal intervals. Empty without a finite value.
  std::string text(int width) const;

private:
  struct Sum {
    double total = 0;
    int64_t count = 0;
  };
  static constexpr size_t most = 2048; // sums kept; then neighbours are merged

  std::vector<Sum> sums;
  int64_t length = 1; // values in each sum
};

//===-- The bar -------------------------------------------------------------------------------------------------===//

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
