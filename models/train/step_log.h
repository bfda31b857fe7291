// The rows of a run: to its log and to those who take them besides.

#pragma once

#include "models/observe/row_sink.h"
#include "models/train/run_folder.h"

namespace kiln {

/// Of several ranks the first writes. All make the same calls.
class StepLog {
public:
  /// Opens the log in the run's folder, and what `options` ask for besides, of a run that goes on from `step`. What it
  /// refers to must outlive it. Throws Error (device) where one of them cannot be written.
  StepLog(RunFolder &folder, const RunOptions &options, int64_t step);

  /// Writes the row. Where that cannot be done, or the folder went away, says why, on all ranks.
  std::optional<std::string> write(const StepRow &row);
  /// Leaves a row that is not written where the next run finds it, if there is a place for it.
  void leave(const StepRow &row) noexcept;

private:
  RunFolder &folder;
  std::optional<RunLog> log;
  std::vector<std::unique_ptr<RowSink>> sinks;
};

} // namespace kiln
