// JSON files with a known set of fields. For a missing field or one of another kind, the error names the file, the
// field, the expected and the actual value. Messages of the JSON library never reach a user. Size and nesting are
// bounded during reading, so no file exhausts the program's memory or stack.

#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kiln {

/// Limits of size and nesting of JSON texts. The header of a safetensors file with a thousand blocks has 2 MiB and
/// three levels; a tokenizer.json of 250,000 tokens has 35 MiB.
inline constexpr int64_t mostJsonBytes = int64_t{64} << 20;
inline constexpr int mostJsonLevels = 64;

/// An object of a JSON file. Fields are read by name and kind; each accessor throws Error if the field is missing or of
/// another kind.
class JsonObject {
public:
  /// Parses `text`, read from `path`, which must be one object within the bounds above.
  JsonObject(const std::string &path, const std::string &text);

  /// Whether the field exists and is not null.
  bool has(const std::string &name) const;
  /// Whether it equals this value.
  bool is(const std::string &name, const nlohmann::json &value) const;
  bool isTextList(const std::string &name) const;
  bool isNumber(const std::string &name) const { return at(name).is_number(); }
  bool truth(const std::string &name) const;
  int64_t integer(const std::string &name) const;
  /// An integer from 0, up to 2^64 − 1.
  uint64_t natural(const std::string &name) const;
  double number(const std::string &name) const;
  std::string text(const std::string &name) const;
  std::vector<double> numbers(const std::string &name) const;
  std::vector<int64_t> naturals(const std::string &name) const;
  std::vector<std::string> textList(const std::string &name) const;
  std::map<std::string, std::string> texts(const std::string &name) const;
  std::vector<std::pair<std::string, std::string>> textPairs(const std::string &name) const;
  JsonObject object(const std::string &name) const;
  std::vector<JsonObject> objects(const std::string &name) const;
  std::vector<std::string> names() const;
  /// Gives a field that exists another name.
  void rename(const std::string &name, const std::string &to);
  /// Replaces a field's text, if it is `text`.
  void renameText(const std::string &name, const std::string &text, const std::string &to);
  /// Throws Error with the expected and the actual value of the field.
  [[noreturn]] void reject(const std::string &name, const std::string &expected) const;

private:
  JsonObject(std::string path, std::string place, nlohmann::json json);
  const nlohmann::json &at(const std::string &name) const;
  /// The list in a field. All its elements must satisfy `isItem`; errors call them `what`.
  const nlohmann::json &list(const std::string &name, const char *what, bool (*isItem)(const nlohmann::json &)) const;

  std::string path, place; // `place`: the way to this object in its file, "" or "settings."
  nlohmann::json json;
};

/// Reads the JSON file `path`, which must be one object.
JsonObject readJsonObject(const std::string &path);

/// JSON as text for a file. Of a string that is not UTF-8, such as a path, the valid parts are kept. Negative `indent`:
/// one line.
std::string textOf(const nlohmann::ordered_json &json, int indent = -1);

} // namespace kiln
