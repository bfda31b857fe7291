// Writes the rows of a run to its log and to other sinks.

#pragma once

#include "models/observe/row_sink.h"
#include "models/train/run_folder.h"

namespace kiln {

/// With several ranks the first writes; all make equal calls.
class StepLog {
public:
  /// Opens the log in the run's folder, and the sinks of `options`, for a run that continues from `step`. Arguments
  /// must outlive it. Throws Error (device) if one of them cannot be written.
  StepLog(RunFolder &folder, const RunOptions &options, int64_t step);

  /// Writes the row. Returns the reason, on all ranks, if that fails or the folder no longer exists.
  std::optional<std::string> write(const StepRow &row);
  /// Keeps a row that could not be written: saves it to another file, if possible, which the next run reads.
  void leave(const StepRow &row) noexcept;

private:
  RunFolder &folder;
  std::optional<RunLog> log;
  std::vector<std::unique_ptr<RowSink>> sinks;
};

} // namespace kiln
