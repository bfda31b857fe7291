// Writes one row to all sinks.

#include "models/train/step_log.h"

#include <fmt/format.h>

namespace kiln {

StepLog::StepLog(RunFolder &folder, const RunOptions &options, int64_t step) : folder(folder) {
  if (!folder.isHeld())
    return;
  log.emplace(folder.path() + "/log.jsonl", step);
  sinks = rowSinks(options, step);
}

std::optional<std::string> StepLog::write(const StepRow &row) {
  Collective &ranks = folder.ranks();
  std::string failure = ranks.isFirst() ? "" : "the first rank could not record a step"; // the error ends all ranks
  if (folder.isHeld())
    try {
      if (!folder.holds())
        throw Error(fmt::format("expected '{}' to stay in place while a run writes to it, but it was removed or "
                                "renamed",
                                folder.path()));
      log->write(row);
      for (const std::unique_ptr<RowSink> &sink : sinks)
        sink->write(row);
    } catch (const Error &error) {
      failure = error.what();
    }
  return ranks.any(ranks.isFirst() && !failure.empty()) ? std::optional(failure) : std::nullopt;
}

void StepLog::leave(const StepRow &row) noexcept {
  if (log)
    log->leave(row);
}

} // namespace kiln
