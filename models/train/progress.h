// What a run shows and records: a bar that is redrawn on a terminal, plain lines elsewhere, and DIR/log.jsonl with one
// JSON object a step.

#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

namespace kiln {

/// One step's numbers. `loss` is the mean over the step's tokens, before its update.
struct StepRow {
  int64_t step = 0; // updates made, this one included
  double loss = 0, rate = 0, gradientNorm = 0, tokensPerSecond = 0, peakShare = 0, seconds = 0;
  std::optional<double> validationLoss;
};

/// The row as a line of log.jsonl.
std::string jsonOf(const StepRow &row);

/// log.jsonl of a run. Opening it for a run that goes on from `step` drops the rows after that step. Writing throws
/// Error (device) when the row is not in the file of that name afterwards.
class RunLog {
public:
  RunLog(const std::string &path, int64_t step);
  ~RunLog();
  RunLog(const RunLog &) = delete;
  void write(const StepRow &row);

private:
  std::string path;
  int file;
};

/// `3:07`, `1:02:45`.
std::string clockText(double seconds);
/// A bar of `width` characters, `done` of it (0 … 1) filled.
std::string barText(double done, int width);

/// Shows a run. Output that cannot be written is lost; the run goes on.
class Progress {
public:
  /// Steps go from `first` to `last`; `terminal` says whether the output can be redrawn.
  Progress(int64_t first, int64_t last, bool terminal, std::FILE *out = stdout);
  ~Progress();

  void show(const StepRow &row);
  /// A line of text above the bar.
  void note(const std::string &text);

private:
  std::string text(const StepRow &row) const;
  void put(const std::string &text);
  void clear();

  int64_t first, last;
  bool terminal, drawn = false;
  std::FILE *out;
  std::chrono::steady_clock::time_point begin, shown;
};

} // namespace kiln
