// The log of a run: DIR/log.jsonl with one JSON object a step; and other receivers of its rows.

#pragma once

#include "models/data/files.h"

#include <cstdint>
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

} // namespace kiln
