// Access to fields; the kind is checked before a value is converted.

#include "models/data/json.h"
#include "dialect/dsl/Types.h"
#include "models/data/files.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <set>

namespace kiln {

using Json = nlohmann::json;

/// The maximum number of bytes of a value in an error message.
static constexpr size_t shownBytes = 40;

std::string textOf(const nlohmann::ordered_json &json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

static std::string shown(const Json &value) {
  // In ASCII, so that it can be cut anywhere.
  const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= shownBytes ? text : text.substr(0, shownBytes) + "…";
}

static Json parse(const std::string &path, const std::string &text) {
  if (text.size() > static_cast<size_t>(mostJsonBytes))
    throw Error(fmt::format("expected at most {} bytes of JSON in '{}', but got {}", mostJsonBytes, path, text.size()));
  std::vector<std::set<std::string>> names; // the fields seen so far, for each enclosing object
  const auto checked = [&](int around, Json::parse_event_t event, const Json &value) { // `around`: nesting depth
    const bool begins = event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (begins && around >= mostJsonLevels)
      throw Error(
          fmt::format("expected JSON in '{}' to be nested at most {} deep, but it is deeper", path, mostJsonLevels));
    if (event == Json::parse_event_t::object_start)
      names.emplace_back();
    if (event == Json::parse_event_t::object_end)
      names.pop_back();
    if (event == Json::parse_event_t::key && !names.back().insert(value.get<std::string>()).second)
      throw Error(fmt::format("expected every field once in '{}', but got {} twice in one object", path, shown(value)));
    return true;
  };
  try {
    return Json::parse(text, checked);
  } catch (const Json::parse_error &error) { // `byte` counts from 1, and is past the end for a truncated text
    const std::string got = error.byte > text.size() ? "it ends" : "there is an unexpected character";
    throw Error(fmt::format("'{}' is no JSON object: after {} bytes {}", path,
                            std::min(text.size(), error.byte - std::min<size_t>(error.byte, 1)), got));
  } catch (const Json::exception &) { // a number outside the range of double
    throw Error(fmt::format("'{}' is no JSON object: a number in it is too large", path));
  }
}

JsonObject::JsonObject(const std::string &path, const std::string &text) : JsonObject(path, "", parse(path, text)) {
  if (!json.is_object())
    throw Error(fmt::format("expected a JSON object in '{}', but got {}", path, shown(json)));
}

JsonObject::JsonObject(std::string path, std::string place, Json json)
    : path(std::move(path)), place(std::move(place)), json(std::move(json)) {}

const Json &JsonObject::at(const std::string &name) const {
  const auto found = json.find(name);
  if (found == json.end())
    throw Error(fmt::format("expected a field '{}{}' in '{}', but there is none", place, name, path));
  return *found;
}

bool JsonObject::has(const std::string &name) const { return json.contains(name) && !json[name].is_null(); }

bool JsonObject::is(const std::string &name, const Json &value) const {
  return json.contains(name) && json[name] == value;
}

void JsonObject::rename(const std::string &name, const std::string &to) {
  if (!json.contains(name))
    return;
  json[to] = json[name];
  json.erase(name);
}

void JsonObject::renameText(const std::string &name, const std::string &text, const std::string &to) {
  if (is(name, text))
    json[name] = to;
}

void JsonObject::reject(const std::string &name, const std::string &expected) const {
  throw Error(
      fmt::format("expected field '{}{}' in '{}' to be {}, but got {}", place, name, path, expected, shown(at(name))));
}

bool JsonObject::truth(const std::string &name) const {
  if (!at(name).is_boolean())
    reject(name, "true or false");
  return at(name).get<bool>();
}

static bool isInteger(const Json &value) {
  return value.is_number_integer() &&
         (!value.is_number_unsigned() || value.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()});
}

int64_t JsonObject::integer(const std::string &name) const {
  if (!isInteger(at(name)))
    reject(name, "an integer");
  return at(name).get<int64_t>();
}

uint64_t JsonObject::natural(const std::string &name) const {
  if (!at(name).is_number_unsigned())
    reject(name, "an integer from 0");
  return at(name).get<uint64_t>();
}

double JsonObject::number(const std::string &name) const {
  if (!at(name).is_number())
    reject(name, "a number");
  return at(name).get<double>();
}

std::string JsonObject::text(const std::string &name) const {
  if (!at(name).is_string())
    reject(name, "a text");
  return at(name).get<std::string>();
}

const Json &JsonObject::list(const std::string &name, const char *what, bool (*isItem)(const Json &)) const {
  const Json &list = at(name);
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), isItem))
    reject(name, fmt::format("a list of {}", what));
  return list;
}

std::vector<double> JsonObject::numbers(const std::string &name) const {
  return list(name, "numbers", [](const Json &item) { return item.is_number(); }).get<std::vector<double>>();
}

std::vector<int64_t> JsonObject::naturals(const std::string &name) const {
  const auto isItem = [](const Json &item) { return item.is_number_unsigned() && isInteger(item); };
  return list(name, "integers from 0", isItem).get<std::vector<int64_t>>();
}

bool JsonObject::isTextList(const std::string &name) const {
  const Json &list = at(name);
  return list.is_array() && std::all_of(list.begin(), list.end(), [](const Json &item) { return item.is_string(); });
}

std::vector<std::string> JsonObject::textList(const std::string &name) const {
  return list(name, "texts", [](const Json &item) { return item.is_string(); }).get<std::vector<std::string>>();
}

std::vector<std::pair<std::string, std::string>> JsonObject::textPairs(const std::string &name) const {
  const auto isPair = [](const Json &item) {
    return item.is_array() && item.size() == 2 && item[0].is_string() && item[1].is_string();
  };
  return list(name, "pairs of texts", isPair).get<std::vector<std::pair<std::string, std::string>>>();
}

std::map<std::string, std::string> JsonObject::texts(const std::string &name) const {
  const Json &object = at(name);
  if (!object.is_object() || !std::all_of(object.begin(), object.end(), [](const Json &v) { return v.is_string(); }))
    reject(name, "an object of texts");
  return object.get<std::map<std::string, std::string>>();
}

JsonObject JsonObject::object(const std::string &name) const {
  if (!at(name).is_object())
    reject(name, "an object");
  return {path, place + name + ".", at(name)};
}

std::vector<JsonObject> JsonObject::objects(const std::string &name) const {
  std::vector<JsonObject> all;
  for (const Json &item : list(name, "objects", [](const Json &item) { return item.is_object(); }))
    all.push_back({path, fmt::format("{}{}[{}].", place, name, all.size()), item});
  return all;
}

JsonObject readJsonObject(const std::string &path) { return {path, readFile(path, mostJsonBytes)}; }

std::vector<std::string> JsonObject::names() const {
  std::vector<std::string> all;
  for (const auto &[name, value] : json.items())
    all.push_back(name);
  return all;
}

} // namespace kiln
