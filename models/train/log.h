// What a run records: DIR/log.jsonl with one JSON object a step.

#pragma once

#include "dialect/dsl/Types.h"

#include <cstdint>
#include <optional>
#include <string>

namespace kiln {

/// One step's numbers. `loss` is the mean over the step's tokens, before its update.
struct StepRow {
  int64_t step = 0; // steps taken, this one included
  double loss = 0, rate = 0, gradientNorm = 0, tokensPerSecond = 0, peakShare = 0, seconds = 0;
  std::optional<double> validationLoss;
  std::optional<double> lossScale; // of this step, where there is one
  bool skipped = false;            // its update, for the gradient overflowed
  Type type = f32;                 // of the model
};

/// The row as a line of log.jsonl.
std::string jsonOf(const StepRow &row);

/// log.jsonl of a run. Opening it for a run that goes on from `step` drops the rows after that step, and adds those
/// that could not be written to it before.
class RunLog {
public:
  RunLog(const std::string &path, int64_t step);
  ~RunLog();
  RunLog(const RunLog &) = delete;
  /// Throws Error (device) when the row is not in the file of that name afterwards.
  void write(const StepRow &row);
  /// Leaves a row that write() could not write in a file beside the log, whose rows the next opening adds. Where that
  /// cannot be written either, the row is lost.
  void leave(const StepRow &row) noexcept;

private:
  std::string path;
  int file;
};

} // namespace kiln
