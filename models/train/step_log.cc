// One row to all of its takers, and the end of a run whose rows have no place.

#include "models/train/step_log.h"

#include <fmt/format.h>

namespace kiln {

StepLog::StepLog(RunFolder &folder, const RunOptions &options, int64_t step, std::function<std::string()> rescue)
    : folder(folder), rescue(std::move(rescue)) {
  if (!folder.isHeld())
    return;
  log.emplace(folder.path() + "/log.jsonl", step);
  sinks = rowSinks(options, step);
}

void StepLog::write(const StepRow &row) {
  Collective &ranks = folder.ranks();
  std::string failure = ranks.isFirst() ? "" : "the first rank could not record a step"; // which ends all
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
  if (!ranks.any(ranks.isFirst() && !failure.empty()))
    return;
  const std::string saved = rescue();
  if (log)
    log->leave(row);
  throw Error(fmt::format("{}; {}", failure, saved), Fault::device);
}

} // namespace kiln
