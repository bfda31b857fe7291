// Reads and writes vocabularies.

#include "models/tokens/files.h"
#include "dialect/dsl/Types.h"
#include "models/data/files.h"
#include "models/data/json.h"
#include "models/tokens/split.h"
#include "models/tokens/vocabulary.h"
#include "runtime/Files.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

namespace kiln {

namespace fs = std::filesystem;

//===-- Lists ---------------------------------------------------------------------------------------------------===//
// Common parts of tokenizer files: lists of tokens with their numbers, and of merged pairs. Byte tokens are written in
// GPT-2's letters (bytesToLetters), words as they are.

using TokenIds = std::unordered_map<std::string, int32_t>;

/// The largest token number in a file.
static constexpr int64_t mostTokens = int64_t{1} << 24;

/// Sets token `id` to `bytes`. Throws Error, which names the file `path`, if it is taken or too large.
static void addToken(Vocabulary &v, int64_t id, const std::string &bytes, const std::string &path) {
  if (id < 0 || id >= mostTokens)
    throw Error(fmt::format("expected numbers of tokens below {} in '{}', but got {}", mostTokens, path, id));
  if (id >= v.size())
    v.tokens.resize(id + 1);
  if (!v.tokens[id].empty() && v.tokens[id] != bytes)
    throw Error(fmt::format("expected one token of number {} in '{}', but got two", id, path));
  v.tokens[id] = bytes;
}

/// The bytes of a token as written in a file; none if it is not valid.
static bool bytesIn(TokenStyle style, const std::string &text, std::string &bytes) {
  if (style == TokenStyle::bytes)
    return lettersToBytes(text, bytes) && !bytes.empty();
  bytes = text;
  return true;
}

/// Adds the tokens of a JSON object of letters and numbers.
static void addTokens(Vocabulary &v, const JsonObject &json, const std::string &path) {
  std::string bytes;
  for (const std::string &name : json.names())
    addToken(v, json.integer(name), bytesIn(v.style, name, bytes) ? bytes : name, path);
}

/// The number of each token; the lowest if several have equal bytes.
static TokenIds findTokenIds(const Vocabulary &v) {
  TokenIds ids;
  for (int64_t id = v.size(); id-- > 0;)
    if (!v.tokens[id].empty())
      ids[v.tokens[id]] = static_cast<int32_t>(id);
  return ids;
}

/// Adds the merge of two tokens in letters; `where` is its place in the file.
static void addMerge(Vocabulary &v, const TokenIds &ids, const std::string &left, const std::string &right,
                     const std::string &where) {
  std::string bytes[2];
  const bool isLetters = bytesIn(v.style, left, bytes[0]) && bytesIn(v.style, right, bytes[1]);
  const auto parts = {ids.find(bytes[0]), ids.find(bytes[1]), ids.find(bytes[0] + bytes[1])};
  if (!isLetters || std::any_of(parts.begin(), parts.end(), [&](const auto &part) { return part == ids.end(); }))
    throw Error(
        fmt::format("expected a merge in {} whose two tokens and result are in the vocabulary, but got '{}' and '{}'",
                    where, left, right));
  v.merges.push_back({parts.begin()[0]->second, parts.begin()[1]->second, parts.begin()[2]->second});
}

/// Marks as special the tokens longer than a byte that no merge makes.
static void findSpecials(Vocabulary &v) {
  std::vector<bool> made(v.size());
  for (const Merge &merge : v.merges)
    made[merge.result] = true;
  for (int64_t id = 0; id < v.size(); ++id)
    if (v.tokens[id].size() > 1 && !made[id])
      v.specials.emplace(v.tokens[id], static_cast<int32_t>(id));
}

//===-- tokenizer.json ------------------------------------------------------------------------------------------===//

using Json = nlohmann::ordered_json;

//===-- Reading -------------------------------------------------------------------------------------------------===//

static void expectText(const JsonObject &json, const std::string &name, const std::string &want) {
  if (json.text(name) != want)
    json.reject(name, fmt::format("\"{}\"", want));
}
static void expectFalse(const JsonObject &json, const std::string &name) {
  if (json.has(name) && json.truth(name))
    json.reject(name, "false");
}

/// The regular expression of a pre-tokenizer: GPT-2's, or one that is applied before it.
static std::string readSplit(const JsonObject &json) {
  const auto isByteLevel = [](const JsonObject &step, bool splits) {
    expectText(step, "type", "ByteLevel");
    expectFalse(step, "add_prefix_space");
    if ((!step.has("use_regex") || step.truth("use_regex")) != splits)
      step.reject("use_regex", splits ? "true" : "false");
  };
  if (json.text("type") != "Sequence") {
    isByteLevel(json, true);
    return namedSplits().at("gpt2");
  }
  const std::vector<JsonObject> steps = json.objects("pretokenizers");
  if (steps.size() != 2)
    json.reject("pretokenizers", "a split and the bytes' letters");
  expectText(steps[0], "type", "Split");
  expectText(steps[0], "behavior", "Isolated");
  expectFalse(steps[0], "invert");
  isByteLevel(steps[1], false);
  return steps[0].object("pattern").text("Regex");
}

/// Throws Error for a post-processor that adds tokens to a text.
static void expectNoAddedTokens(const JsonObject &json) {
  if (!json.has("post_processor"))
    return;
  const JsonObject given = json.object("post_processor");
  const std::vector<JsonObject> steps =
      given.text("type") == "Sequence" ? given.objects("processors") : std::vector{given};
  for (const JsonObject &step : steps) {
    const std::string type = step.text("type");
    const auto adds = [](const JsonObject &piece) { return piece.has("SpecialToken"); };
    const bool addsNothing =
        type == "ByteLevel" || (type == "TemplateProcessing" && std::ranges::none_of(step.objects("single"), adds));
    if (!addsNothing)
      json.reject("post_processor", "one that adds no tokens to a text");
  }
}

/// The normaliser of a word tokenizer in the form of tokenizer.json. It runs before the split at white space.
static Json wordNormalizer(TokenStyle style) {
  const Json lower = {{"type", "Lowercase"}};
  if (style == TokenStyle::wholeWords)
    return lower;
  const Json known = {{"type", "Replace"}, {"pattern", {{"String", endOfWord}}}, {"content", "\ufffd"}},
             ends = {{"type", "Replace"}, {"pattern", {{"Regex", R"((?<=\S)(?=\s|\z))"}}}, {"content", endOfWord}};
  return {{"type", "Sequence"}, {"normalizers", Json::array({known, lower, ends})}};
}
static Json wordSplit() { return {{"type", "WhitespaceSplit"}}; }

/// The style of a file's tokenizer, by its model and normaliser.
static TokenStyle styleIn(const JsonObject &json, const JsonObject &model) {
  const bool isWordLevel = model.text("type") == "WordLevel";
  if (!isWordLevel)
    expectText(model, "type", "BPE");
  const TokenStyle words = isWordLevel ? TokenStyle::wholeWords : TokenStyle::words;
  if (!isWordLevel && !json.has("normalizer"))
    return TokenStyle::bytes;
  if (!json.is("normalizer", wordNormalizer(words)))
    json.reject("normalizer", isWordLevel ? textOf(wordNormalizer(words)) : "null");
  if (!json.is("pre_tokenizer", wordSplit()))
    json.reject("pre_tokenizer", textOf(wordSplit()));
  expectText(model, "unk_token", unknownToken);
  return words;
}

static void readMerges(Vocabulary &v, const JsonObject &model, const std::string &path) {
  const TokenIds ids = findTokenIds(v);
  std::vector<std::pair<std::string, std::string>> pairs;
  if (model.isTextList("merges"))
    for (const std::string &line : model.textList("merges")) {
      const size_t space = std::min(line.find(' '), line.size());
      pairs.emplace_back(line.substr(0, space), line.substr(std::min(space + 1, line.size())));
    }
  else
    pairs = model.textPairs("merges");
  for (size_t i = 0; i < pairs.size(); ++i)
    addMerge(v, ids, pairs[i].first, pairs[i].second, fmt::format("merge {} of '{}'", i, path));
}

/// Reads the file as a vocabulary. Throws Error for a damaged file, and, by the field's name, for unsupported features.
static Vocabulary readTokenizerJson(const std::string &path) {
  const JsonObject json = readJsonObject(path), model = json.object("model");
  Vocabulary v;
  v.style = styleIn(json, model);
  expectNoAddedTokens(json);
  for (const char *field : {"byte_fallback", "fuse_unk"})
    if (model.has(field))
      expectFalse(model, field);
  for (const char *field : {"end_of_word_suffix", "continuing_subword_prefix"})
    if (model.has(field) && !model.text(field).empty())
      model.reject(field, "null");
  if (v.style == TokenStyle::bytes) {
    if (model.has("unk_token") && !model.text("unk_token").empty())
      model.reject("unk_token", "null");
    v.wholePieces = model.has("ignore_merges") && model.truth("ignore_merges");
    v.split = json.has("pre_tokenizer") ? readSplit(json.object("pre_tokenizer")) : "";
  }
  addTokens(v, model.object("vocab"), path);
  if (v.style != TokenStyle::wholeWords)
    readMerges(v, model, path);
  if (json.has("added_tokens"))
    for (const JsonObject &token : json.objects("added_tokens")) {
      const std::string text = token.text("content");
      addToken(v, token.integer("id"), text, path);
      v.specials.emplace(text, static_cast<int32_t>(token.integer("id")));
    }
  return v;
}

//===-- Writing -------------------------------------------------------------------------------------------------===//

static Json preTokenizer(const std::string &split) {
  const bool isGpt2 = split == namedSplits().at("gpt2");
  const Json bytes = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", isGpt2}};
  if (isGpt2)
    return bytes;
  if (split.empty())
    return nullptr;
  const Json cut = {{"type", "Split"}, {"pattern", {{"Regex", split}}}, {"behavior", "Isolated"}, {"invert", false}};
  return {{"type", "Sequence"}, {"pretokenizers", Json::array({cut, bytes})}};
}

/// A token as these files show it; style bytes uses GPT-2's letters.
static std::string shownToken(const Vocabulary &v, int32_t id) {
  return v.style == TokenStyle::bytes ? bytesToLetters(v.tokens[id]) : v.tokens[id];
}

/// The tokens and their numbers, as in tokenizer.json and vocab.json.
static Json tokenList(const Vocabulary &v) {
  Json tokens = Json::object();
  auto &list = tokens.get_ref<Json::object_t &>(); // its operator[] is a linear search
  list.reserve(v.size());
  std::set<std::string_view> known;
  for (int64_t id = 0; id < v.size(); ++id)
    if (!v.tokens[id].empty() && known.insert(v.tokens[id]).second) // the lowest number of a duplicate
      list.emplace_back(v.specials.contains(v.tokens[id]) ? v.tokens[id] : shownToken(v, static_cast<int32_t>(id)), id);
  return tokens;
}

static Json specialList(const Vocabulary &v) {
  std::map<int32_t, std::string> specials; // sorted by number, as readers expect
  for (const auto &[text, id] : v.specials)
    specials.emplace(id, text);
  Json added = Json::array();
  for (const auto &[id, text] : specials)
    added.push_back({{"id", id},
                     {"content", text},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  return added;
}

static Json writeModel(const Vocabulary &v) {
  if (v.style == TokenStyle::wholeWords)
    return {{"type", "WordLevel"}, {"vocab", tokenList(v)}, {"unk_token", unknownToken}};
  Json pairs = Json::array();
  for (const Merge &merge : v.merges)
    pairs.push_back(Json::array({shownToken(v, merge.left), shownToken(v, merge.right)}));
  const Json unknown = v.style == TokenStyle::words ? Json(unknownToken) : Json();
  return {{"type", "BPE"},          {"dropout", nullptr},
          {"unk_token", unknown},   {"continuing_subword_prefix", nullptr},
          {"fuse_unk", false},      {"end_of_word_suffix", nullptr},
          {"byte_fallback", false}, {"ignore_merges", v.wholePieces},
          {"vocab", tokenList(v)},  {"merges", pairs}};
}

/// The vocabulary as tokenizer.json.
static Json tokenizerJson(const Vocabulary &v) {
  const Json letters = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  const Json spaces = {{"type", "Replace"}, {"pattern", {{"String", endOfWord}}}, {"content", " "}};
  const bool ofBytes = v.style == TokenStyle::bytes;
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", specialList(v)},
          {"normalizer", ofBytes ? Json() : wordNormalizer(v.style)},
          {"pre_tokenizer", ofBytes ? preTokenizer(v.split) : wordSplit()},
          {"post_processor", ofBytes ? letters : Json()},
          {"decoder", ofBytes                        ? letters
                      : v.style == TokenStyle::words ? spaces
                                                     : Json()},
          {"model", writeModel(v)}};
}

//===-- vocab.json and merges.txt -------------------------------------------------------------------------------===//

static Vocabulary readPair(const std::string &tokens, const std::string &merges) {
  Vocabulary v;
  v.split = namedSplits().at("gpt2");
  addTokens(v, readJsonObject(tokens), tokens);
  const TokenIds ids = findTokenIds(v);
  const std::string text = readFile(merges, mostJsonBytes);
  int64_t number = 0;
  forLines(text, [&](std::string_view line) {
    if ((++number == 1 && line.starts_with("#version")) || line.empty())
      return;
    const size_t space = line.find(' ');
    if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos)
      throw Error(fmt::format("expected two tokens in line {} of '{}', but got '{}'", number, merges, line));
    addMerge(v, ids, std::string(line.substr(0, space)), std::string(line.substr(space + 1)),
             fmt::format("line {} of '{}'", number, merges));
  });
  findSpecials(v);
  return v;
}

//===-- llm.c ---------------------------------------------------------------------------------------------------===//

void findMerges(Vocabulary &v) {
  const TokenIds ids = findTokenIds(v);
  std::unordered_map<std::string, int64_t> ranks; // rank by the bytes of the merged token
  for (int64_t id = 0; id < v.size(); ++id) {
    const std::string &token = v.tokens[id];
    if (token.size() < 2)
      continue;
    std::vector<std::string> parts;
    for (const char byte : token)
      parts.emplace_back(1, byte);
    while (parts.size() > 2) { // merge the first pair of the lowest rank
      size_t best = 0;
      int64_t lowest = v.size();
      for (size_t i = 0; i + 1 < parts.size(); ++i)
        if (const auto found = ranks.find(parts[i] + parts[i + 1]); found != ranks.end() && found->second < lowest) {
          lowest = found->second;
          best = i;
        }
      if (lowest == v.size())
        break;
      parts[best] += parts[best + 1];
      parts.erase(parts.begin() + best + 1);
    }
    if (parts.size() != 2 || !ids.contains(parts[0]) || !ids.contains(parts[1]))
      continue;
    ranks.emplace(token, id);
    v.merges.push_back({ids.at(parts[0]), ids.at(parts[1]), static_cast<int32_t>(id)});
  }
  findSpecials(v);
}

/// A header of 256 numbers (this magic number, version, number of tokens, end of text), then for each token a byte with
/// its length and its bytes.
static constexpr int32_t magic = 20240328;

bool isLlmcTokenizer(const std::string &path) {
  std::error_code ignored;
  int32_t first = 0;
  if (!fs::is_regular_file(path, ignored) || fs::file_size(path, ignored) < sizeof(first))
    return false;
  InputFile(path).read(0, &first, sizeof(first));
  return first == magic;
}

static Vocabulary readLlmc(const std::string &path) {
  const std::string file = readFile(path, mostJsonBytes);
  int32_t header[256];
  if (file.size() < sizeof(header))
    throw Error(fmt::format("expected a tokenizer of llm.c in '{}', but it has {} bytes", path, file.size()));
  std::memcpy(header, file.data(), sizeof(header));
  if (header[0] != magic || header[1] < 1 || header[1] > 2)
    throw Error(fmt::format("expected a tokenizer of llm.c ({}, version 1 or 2) in '{}', but got {}, version {}", magic,
                            path, header[0], header[1]));
  Vocabulary v;
  v.split = namedSplits().at("gpt2");
  size_t at = sizeof(header);
  for (int32_t id = 0; id < header[2]; ++id) {
    const size_t length = at < file.size() ? static_cast<uint8_t>(file[at]) : 0;
    if (at >= file.size() || at + 1 + length > file.size())
      throw Error(fmt::format("expected {} tokens in '{}', but it ends in number {}", header[2], path, id));
    addToken(v, id, file.substr(at + 1, length), path);
    at += 1 + length;
  }
  if (at != file.size())
    throw Error(fmt::format("expected {} tokens in {} bytes of '{}', but it has {}", header[2], at, path, file.size()));
  findMerges(v);
  return v;
}

//===-- Folders -------------------------------------------------------------------------------------------------===//

static std::string within(const std::string &folder, const char *name) { return (fs::path(folder) / name).string(); }
static bool exists(const std::string &path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// The names of GPT-2's two files.
static constexpr std::pair<const char *, const char *> pairNames[] = {{"vocab.json", "merges.txt"},
                                                                      {"encoder.json", "vocab.bpe"}};

bool hasVocabulary(const std::string &folder) {
  return exists(within(folder, "tokenizer.json")) ||
         std::any_of(std::begin(pairNames), std::end(pairNames), [&](const auto &names) {
           return exists(within(folder, names.first)) && exists(within(folder, names.second));
         });
}

Vocabulary readVocabulary(const std::string &path) {
  if (path == "bytes")
    return byteVocabulary();
  Vocabulary v;
  std::error_code ignored;
  if (!fs::is_directory(path, ignored))
    v = path.ends_with(".bin") ? readLlmc(path) : readTokenizerJson(path);
  else if (exists(within(path, "tokenizer.json")))
    v = readTokenizerJson(within(path, "tokenizer.json"));
  else {
    const auto names = std::find_if(std::begin(pairNames), std::end(pairNames), [&](const auto &pair) {
      return exists(within(path, pair.first)) && exists(within(path, pair.second));
    });
    if (names == std::end(pairNames))
      throw Error(
          fmt::format("no tokenizer in '{}'; expected tokenizer.json, or vocab.json and merges.txt, or encoder.json "
                      "and vocab.bpe",
                      path));
    v = readPair(within(path, names->first), within(path, names->second));
  }
  verify(v);
  return v;
}

void writeVocabulary(const std::string &folder, const Vocabulary &v) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed)
    throw Error(fmt::format("cannot make folder '{}': {}", folder, failed.message()), Fault::device);
  if (v.style == TokenStyle::bytes) {
    std::string lines = "#version: 0.2\n";
    for (const Merge &merge : v.merges)
      lines += shownToken(v, merge.left) + " " + shownToken(v, merge.right) + "\n";
    replaceFile(within(folder, "vocab.json"), textOf(tokenList(v)));
    replaceFile(within(folder, "merges.txt"), lines);
  }
  replaceFile(within(folder, "tokenizer.json"), textOf(tokenizerJson(v)));
}

} // namespace kiln
