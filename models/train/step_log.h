// The rows of a run: to its log and to those who take them besides.

#pragma once

#include "models/observe/row_sink.h"
#include "models/train/run_folder.h"

#include <functional>

namespace kiln {

/// Of several ranks the first writes. All make the same calls.
class StepLog {
public:
  /// Opens the log in the run's folder, and what `options` ask for besides, of a run that goes on from `step`. `rescue`
  /// saves what can be saved, and says what came of it. What it refers to must outlive it. Throws Error (device) where
  /// one of them cannot be written.
  StepLog(RunFolder &folder, const RunOptions &options, int64_t step, std::function<std::string()> rescue);

  /// Writes the row. When that cannot be done, or the folder went away, throws Error (device) after a rescue, of which
  /// that tells, on all ranks; the row is left where the next run finds it, if there is a place for it.
  void write(const StepRow &row);

private:
  RunFolder &folder;
  const std::function<std::string()> rescue;
  std::optional<RunLog> log;
  std::vector<std::unique_ptr<RowSink>> sinks;
};

} // namespace kiln
