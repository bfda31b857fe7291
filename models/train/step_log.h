// Writes the rows of a run to its log and to other sinks: TensorBoard's, and llm.c's main.log.

#pragma once

#include "models/train/log.h"
#include "models/train/options.h"
#include "models/train/run_folder.h"

#include <memory>

namespace kiln {

//===-- llm.c's main.log ----------------------------------------------------------------------------------------===//
// Its plotting scripts read these lines:
//
//     s:0 tel:10.9891                           validation loss after this many steps
//     s:0 trl:10.9894 lr:0.000300 norm:15.91    loss, learning rate and gradient norm of step 0, counted from 0

/// The lines of a row.
std::string mainLogLines(const StepRow &row);

class MainLog : public RowSink {
public:
  /// Opens a log. Of an existing file it keeps the lines of the first `step` steps.
  MainLog(const std::string &path, int64_t step);
  void write(const StepRow &row) override;

private:
  std::optional<AppendedFile> file;
};

//===-- All sinks -----------------------------------------------------------------------------------------------===//

/// With several ranks the first writes; all make equal calls.
class StepLog {
public:
  /// Opens the log in the run's folder, and the sinks of `options`, for a run that continues from `step`. Arguments
  /// must outlive it. Throws Error (device) if one of them cannot be written.
  StepLog(RunFolder &folder, const RunOptions &options, int64_t step);

  /// Writes the row. Returns the reason, on all ranks, if that fails or the folder no longer exists.
  std::optional<std::string> write(const StepRow &row);
  /// The row of the last step that an earlier run has left; on the first rank only.
  std::optional<StepRow> left() const { return log ? log->left() : std::nullopt; }
  /// Keeps a row that cannot be written yet: saves it to another file, if possible, which the next run reads.
  void leave(const StepRow &row) noexcept;

private:
  RunFolder &folder;
  std::optional<RunLog> log;
  std::vector<std::unique_ptr<RowSink>> sinks;
};

} // namespace kiln
