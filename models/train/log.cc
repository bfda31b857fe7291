// Writes the log.

#include "models/train/log.h"
#include "dialect/dsl/Types.h"
#include "models/data/json.h"
#include "models/observe/tensorboard.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <sstream>

namespace kiln {

std::optional<double> StepRow::number(const std::string &tag) const {
  for (const auto &[name, value] : scalars)
    if (const double *number = std::get_if<double>(&value); number && name == tag)
      return *number;
  return {};
}

bool StepRow::has(const std::string &tag, const Scalar &value) const {
  return std::find(scalars.begin(), scalars.end(), std::pair(tag, value)) != scalars.end();
}

std::string toJson(const StepRow &row) {
  nlohmann::ordered_json json = {{"step", row.step}};
  for (const auto &[tag, value] : row.scalars)
    std::visit([&, &tag = tag](const auto &scalar) { json[tag] = scalar; }, value);
  json["seconds"] = row.seconds;
  return textOf(json);
}

/// The row of a line of log.jsonl, the inverse of toJson(); none for a line that is no row.
static std::optional<StepRow> readRow(const std::string &line) try {
  StepRow row;
  const nlohmann::ordered_json json = nlohmann::ordered_json::parse(line);
  for (const auto &[tag, value] : json.items())
    if (tag == "step")
      row.step = value;
    else if (tag == "seconds")
      row.seconds = value;
    else if (value.is_boolean())
      row.set(tag, value.get<bool>());
    else if (value.is_string())
      row.set(tag, value.get<std::string>());
    else
      row.set(tag, value.is_number() ? value.get<double>() : NAN);
  return row.number("loss") ? std::optional(row) : std::nullopt;
} catch (const nlohmann::json::exception &) {
  return {};
}

/// The step of a line; none for an incomplete line after a crash.
static std::optional<int64_t> readStep(const std::string &path, const std::string &line) {
  try {
    return JsonObject(path, line).integer("step");
  } catch (const Error &) {
    return {};
  }
}

/// The lines of a log up to step `last`, by step.
static std::map<int64_t, std::string> rowsUpTo(const std::string &path, int64_t last) {
  std::map<int64_t, std::string> rows;
  if (!std::filesystem::exists(path))
    return rows;
  std::istringstream lines(readFile(path));
  for (std::string line; std::getline(lines, line);)
    if (const std::optional<int64_t> step = readStep(path, line); step && *step <= last)
      rows.emplace(*step, line);
  return rows;
}

/// The file for a row that is not in the log at `path` yet.
static std::string restPath(const std::string &path) { return path + ".rest"; }

RunLog::RunLog(const std::string &path, int64_t step) : path(path) {
  std::map<int64_t, std::string> rows = rowsUpTo(path, step);
  for (const auto &[number, line] : rowsUpTo(restPath(path), step))
    if (number == step && !rows.contains(step))
      kept = readRow(line);
    else
      rows.emplace(number, line);
  std::string text;
  for (const auto &[number, line] : rows)
    text += line + "\n";
  if (std::filesystem::exists(path) || !text.empty())
    replaceFile(path, text);
  if (!kept)
    std::filesystem::remove(restPath(path));
  file.emplace(path);
}

void RunLog::write(const StepRow &row) {
  file->write(toJson(row) + "\n");
  if (file->isRemoved())
    throw Error(fmt::format("expected '{}' to stay in place while a run writes to it, but it was removed", path),
                Fault::device);
  if (kept && row.step == kept->step)
    std::filesystem::remove(restPath(path));
}

void RunLog::leave(const StepRow &row) noexcept {
  try {
    replaceFile(restPath(path), toJson(row) + "\n");
  } catch (const std::exception &) { // the run reports the original error
  }
}

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
