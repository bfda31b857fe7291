// Reads HellaSwag tasks.

#include "models/data/hellaswag.h"
#include "dialect/dsl/Types.h"
#include "models/data/compressed.h"
#include "models/data/json.h"
#include "models/data/text.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

namespace kiln {

/// The lines of a text without their line ends; a last line without an end counts if it is not empty.
static std::vector<std::string> linesOf(const std::string &text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    if (!lines.back().empty() && lines.back().back() == '\r')
      lines.back().pop_back();
    at = end + 1;
  }
  return lines;
}

/// The index of the correct ending; `where` names the line in errors.
static int rightIn(const std::string &text, const std::string &where) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0 || number > 3)
    throw Error(fmt::format("expected the right ending's number, from 0 to 3, in {}, but got '{}'", where, text));
  return number;
}

static HellaSwagTask taskOf(const JsonObject &json, const std::string &where) {
  HellaSwagTask task = {.context = json.text("ctx")};
  const std::vector<std::string> endings = json.textList("endings");
  if (endings.size() != task.endings.size())
    json.reject("endings", "a list of 4 texts");
  std::copy(endings.begin(), endings.end(), task.endings.begin());
  task.right = rightIn(json.isNumber("label") ? std::to_string(json.integer("label")) : json.text("label"), where);
  return task;
}

std::vector<HellaSwagTask> readHellaSwag(const std::string &path) {
  const std::vector<std::string> lines = linesOf(readUnpacked(path, mostTextBytes()));
  std::vector<HellaSwagTask> tasks;
  const bool isJson = path.find(".jsonl") != std::string::npos;
  constexpr size_t linesOfTask = 6;
  if (!isJson && lines.size() % linesOfTask != 0)
    throw Error(
        fmt::format("expected {} lines for each task of '{}', but got {} lines", linesOfTask, path, lines.size()));
  for (size_t i = 0; i < lines.size(); i += isJson ? 1 : linesOfTask) {
    const std::string where = fmt::format("{}:{}", path, i + 1);
    if (isJson) {
      tasks.push_back(taskOf(JsonObject(where, lines[i]), where));
      continue;
    }
    HellaSwagTask &task = tasks.emplace_back(HellaSwagTask{.context = lines[i]});
    task.right = rightIn(lines[i + 1], fmt::format("{}:{}", path, i + 2));
    std::copy_n(lines.begin() + static_cast<int64_t>(i) + 2, task.endings.size(), task.endings.begin());
  }
  if (tasks.empty())
    throw Error(fmt::format("expected tasks in '{}', but there are none", path));
  return tasks;
}

} // namespace kiln
