// Writes the rows of a run to its log and to other sinks.

#pragma once

#include "models/observe/row_sink.h"
#include "models/train/run_folder.h"

#include <functional>

namespace kiln {

/// With several ranks the first writes; all make equal calls.
class StepLog {
public:
  /// Opens the log in the run's folder, and the sinks of `options`, for a run that continues from `step`. `rescue`
  /// saves what can be saved, and describes the outcome. Arguments must outlive it. Throws Error (device) if one of
  /// them cannot be written.
  StepLog(RunFolder &folder, const RunOptions &options, int64_t step, std::function<std::string()> rescue);

  /// Writes the row. If that fails, or the folder has gone, it throws Error (device) on all ranks after a rescue, whose
  /// outcome the error tells. The row is left where the next session finds it, if possible.
  void write(const StepRow &row);

private:
  RunFolder &folder;
  const std::function<std::string()> rescue;
  std::optional<RunLog> log;
  std::vector<std::unique_ptr<RowSink>> sinks;
};

} // namespace kiln
