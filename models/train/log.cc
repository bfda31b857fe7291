// Writes the log.

#include "models/train/log.h"
#include "dialect/dsl/Types.h"
#include "models/data/json.h"

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

} // namespace kiln
