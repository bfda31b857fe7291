// Writes one row to all sinks.

#include "models/train/step_log.h"
#include "models/observe/tensorboard.h"

#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <sstream>

namespace kiln {

//===-- llm.c's main.log ----------------------------------------------------------------------------------------===//

std::string mainLogLines(const StepRow &row) {
  std::string text =
      fmt::format("s:{} trl:{:.4f} lr:{:.6f} norm:{:.2f}\n", row.step - 1, row.number("loss").value_or(NAN),
                  row.number("lr").value_or(NAN), row.number("grad_norm").value_or(NAN));
  if (const std::optional<double> loss = row.number("val_loss"))
    text += fmt::format("s:{} tel:{:.4f}\n", row.step, *loss);
  return text;
}

/// The lines of a log up to step `step`.
static std::string linesUpTo(const std::string &path, int64_t step) {
  std::string kept;
  if (step == 0 || !std::filesystem::exists(path))
    return kept;
  std::istringstream lines(readFile(path));
  for (std::string line; std::getline(lines, line) && !lines.eof();) { // an incomplete line is dropped
    long long number = 0;
    char kind[4] = {};
    if (std::sscanf(line.c_str(), "s:%lld %3[a-z]:", &number, kind) == 2 &&
        number < step + (std::string(kind) == "tel"))
      kept += line + "\n";
  }
  return kept;
}

MainLog::MainLog(const std::string &path, int64_t step) {
  const std::string kept = linesUpTo(path, step);
  if (std::filesystem::exists(path))
    replaceFile(path, kept);
  file.emplace(path);
}

void MainLog::write(const StepRow &row) { file->write(mainLogLines(row)); }

//===-- All sinks -----------------------------------------------------------------------------------------------===//

/// The sinks that the options ask for, for a run that continues from `step`.
static std::vector<std::unique_ptr<RowSink>> rowSinks(const RunOptions &options, int64_t step) {
  std::vector<std::unique_ptr<RowSink>> sinks;
  if (options.tensorboard)
    sinks.push_back(std::make_unique<TensorBoardLog>(*options.tensorboard, step));
  if (options.mainLog)
    sinks.push_back(std::make_unique<MainLog>(options.out + "/main.log", step));
  return sinks;
}

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
