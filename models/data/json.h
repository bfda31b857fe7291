// JSON files with a known set of fields. What a file lacks, or has of another kind, ends in an error that names the
// file, the field, what was expected there and what was found; the JSON library's own words never reach a user. Size
// and nesting are bounded while a text is read, so that no file takes the memory or the stack of the program.

#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kiln {

/// Bytes of the largest text, and levels of the deepest nesting, that are read as JSON. The header of a safetensors
/// file with a thousand blocks has 2 MiB and three levels, a tokenizer.json of 250,000 tokens 35 MiB.
inline constexpr int64_t mostJsonBytes = int64_t{64} << 20;
inline constexpr int mostJsonLevels = 64;

/// One object of a JSON file. Fields are asked for by name and kind; each throws Error when there is no such field, or
/// its value is of another kind.
class JsonObject {
public:
  /// Parses `text`, read from `path`, which must be one object within the bounds above.
  JsonObject(const std::string &path, const std::string &text);

  /// Whether there is such a field and it is not null.
  bool has(const std::string &name) const;
  /// Whether it is exactly this.
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
  /// Throws that the field was expected to be `expected`, with what it is.
  [[noreturn]] void reject(const std::string &name, const std::string &expected) const;

private:
  JsonObject(std::string path, std::string place, nlohmann::json json);
  const nlohmann::json &at(const std::string &name) const;

  std::string path, place; // `place`: the way to this object in its file, "" or "settings."
  nlohmann::json json;
};

/// The JSON file `path`, which must be one object.
JsonObject readJsonObject(const std::string &path);

/// JSON as files hold it: a text that is no UTF-8 (a path may be) keeps its valid parts. Negative `indent`: one line.
std::string textOf(const nlohmann::ordered_json &json, int indent = -1);

} // namespace kiln
