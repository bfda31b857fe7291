// What a run records: DIR/log.jsonl with one JSON object a step.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kiln {

/// What a row says under a tag.
using Scalar = std::variant<double, bool, std::string>;

/// What there is to say of a step: scalars by their tags, in the order of the log's line. `loss` is the mean over the
/// step's targets, before its update.
struct StepRow {
  int64_t step = 0; // steps taken, this one included
  std::vector<std::pair<std::string, Scalar>> scalars;
  double seconds = 0; // since the run began, or went on

  void set(const std::string &tag, Scalar value) { scalars.emplace_back(tag, std::move(value)); }
  /// The number of that tag, if there is one.
  std::optional<double> number(const std::string &tag) const;
  /// Whether the tag is there and says `value`.
  bool has(const std::string &tag, const Scalar &value) const;
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
