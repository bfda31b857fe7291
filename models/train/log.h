// The log of a run: DIR/log.jsonl with one JSON object a step; and other receivers of its rows.

#pragma once

#include "models/data/files.h"
#include "models/train/options.h"
#include "models/train/run_folder.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kiln {

/// The value of a tag in a row.
using Scalar = std::variant<double, bool, std::string>;

/// A row of the log: scalars by tag, in the order of the line. `loss` is the mean over the step's targets, before its
/// update.
struct StepRow {
  int64_t step = 0; // number of steps so far, including this one
  std::vector<std::pair<std::string, Scalar>> scalars;
  double seconds = 0; // since the run started or resumed

  void set(const std::string &tag, Scalar value) { scalars.emplace_back(tag, std::move(value)); }
  /// The number with this tag; nothing if there is none.
  std::optional<double> number(const std::string &tag) const;
  /// Whether the tag is present with this value.
  bool has(const std::string &tag, const Scalar &value) const;
};

/// The row as a line of log.jsonl.
std::string toJson(const StepRow &row);

/// A receiver of the rows, in addition to the log itself.
class RowSink {
public:
  virtual ~RowSink() = default;
  /// Throws Error (device) if the row cannot be written.
  virtual void write(const StepRow &row) = 0;
};

/// log.jsonl of a run. Opening it for a run that continues from `step` drops the rows after that step.
class RunLog {
public:
  RunLog(const std::string &path, int64_t step);
  /// The row of `step` that an earlier run has left; nothing if the log has the row.
  const std::optional<StepRow> &left() const { return kept; }
  /// Throws Error (device) if the row is not in the file afterwards.
  void write(const StepRow &row);
  /// Puts a row that cannot be written yet into a file next to the log, for the next run. If that fails, the row is
  /// lost.
  void leave(const StepRow &row) noexcept;

private:
  std::optional<StepRow> kept;
  std::string path;
  std::optional<AppendedFile> file;
};

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
