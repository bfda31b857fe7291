// Writes the log.

#include "models/train/log.h"
#include "dialect/dsl/Types.h"
#include "models/data/json.h"

#include <algorithm>
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

/// The file for rows that could not be appended to the log at `path`.
static std::string restPath(const std::string &path) { return path + ".rest"; }

RunLog::RunLog(const std::string &path, int64_t step) : path(path) {
  std::map<int64_t, std::string> rows = rowsUpTo(path, step);
  rows.merge(rowsUpTo(restPath(path), step));
  std::string text;
  for (const auto &[number, line] : rows)
    text += line + "\n";
  if (std::filesystem::exists(path) || !text.empty())
    replaceFile(path, text);
  std::filesystem::remove(restPath(path));
  file.emplace(path);
}

void RunLog::write(const StepRow &row) {
  file->write(toJson(row) + "\n");
  if (file->isRemoved())
    throw Error(fmt::format("expected '{}' to stay in place while a run writes to it, but it was removed", path),
                Fault::device);
}

void RunLog::leave(const StepRow &row) noexcept {
  try {
    replaceFile(restPath(path), toJson(row) + "\n");
  } catch (const std::exception &) { // the run reports the original error
  }
}

} // namespace kiln
