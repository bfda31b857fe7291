// Reading and writing vocabularies.

#include "models/tokens/files.h"
#include "dialect/dsl/Types.h"
#include "models/data/files.h"
#include "models/data/json.h"
#include "runtime/InputFile.h"

#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <unordered_map>

namespace kiln {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

//===-- Tokens and merges in letters ----------------------------------------------------------------------------===//

/// The largest number of tokens that a file may name.
static constexpr int64_t mostTokens = int64_t{1} << 24;

/// Puts a token of `bytes` in the place of `id`.
static void addToken(Vocabulary &v, int64_t id, const std::string &bytes, const std::string &path) {
  if (id < 0 || id >= mostTokens)
    throw Error(fmt::format("expected numbers of tokens below {} in '{}', but got {}", mostTokens, path, id));
  if (id >= v.size())
    v.tokens.resize(id + 1);
  if (!v.tokens[id].empty() && v.tokens[id] != bytes)
    throw Error(fmt::format("expected one token of number {} in '{}', but got two", id, path));
  v.tokens[id] = bytes;
}

/// The tokens that an object of letters and numbers names.
static void addTokens(Vocabulary &v, const JsonObject &json, const std::string &path) {
  std::string bytes;
  for (const std::string &name : json.names())
    addToken(v, json.integer(name), bytesOf(name, bytes) && !bytes.empty() ? bytes : name, path);
}

using Ids = std::unordered_map<std::string, int32_t>;
static Ids idsOf(const Vocabulary &v) {
  Ids ids;
  for (int64_t id = v.size(); id-- > 0;)
    if (!v.tokens[id].empty())
      ids[v.tokens[id]] = static_cast<int32_t>(id);
  return ids;
}

/// Adds the merge of two tokens in letters, which `where` has.
static void addMerge(Vocabulary &v, const Ids &ids, const std::string &left, const std::string &right,
                     const std::string &where) {
  std::string bytes[2];
  const bool isLetters = bytesOf(left, bytes[0]) && bytesOf(right, bytes[1]);
  const auto parts = {ids.find(bytes[0]), ids.find(bytes[1]), ids.find(bytes[0] + bytes[1])};
  if (!isLetters || std::any_of(parts.begin(), parts.end(), [&](const auto &part) { return part == ids.end(); }))
    throw Error(fmt::format("expected two tokens in {} that make a third of the vocabulary, but got '{}' and '{}'",
                            where, left, right));
  v.merges.push_back({parts.begin()[0]->second, parts.begin()[1]->second, parts.begin()[2]->second});
}

/// Tokens that are more than a byte and that no merge makes.
static void findSpecials(Vocabulary &v) {
  std::vector<bool> made(v.size());
  for (const Merge &merge : v.merges)
    made[merge.result] = true;
  for (int64_t id = 0; id < v.size(); ++id)
    if (v.tokens[id].size() > 1 && !made[id])
      v.specials.emplace(v.tokens[id], static_cast<int32_t>(id));
}

//===-- vocab.json and merges.txt -------------------------------------------------------------------------------===//

static Vocabulary readPair(const std::string &tokens, const std::string &merges) {
  Vocabulary v;
  v.split = namedSplits().at("gpt2");
  addTokens(v, readJsonObject(tokens), tokens);
  const Ids ids = idsOf(v);
  const std::string text = readFile(merges, mostJsonBytes);
  int64_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    if (!line.empty() && line.back() == '\r')
      line.pop_back();
    if (++number == 1 && line.starts_with("#version"))
      continue;
    if (line.empty())
      continue;
    const size_t space = line.find(' ');
    if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos)
      throw Error(fmt::format("expected two tokens in line {} of '{}', but got '{}'", number, merges, line));
    addMerge(v, ids, line.substr(0, space), line.substr(space + 1), fmt::format("line {} of '{}'", number, merges));
  }
  findSpecials(v);
  return v;
}

//===-- tokenizer.json ------------------------------------------------------------------------------------------===//

static void expectText(const JsonObject &json, const std::string &name, const std::string &want) {
  if (json.text(name) != want)
    json.reject(name, fmt::format("\"{}\"", want));
}
static void expectFalse(const JsonObject &json, const std::string &name) {
  if (json.has(name) && json.truth(name))
    json.reject(name, "false");
}

/// The expression of a pre-tokenizer: GPT-2's own, or one that stands before it.
static std::string splitOf(const JsonObject &json) {
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

static Vocabulary readWhole(const std::string &path) {
  const JsonObject json = readJsonObject(path), model = json.object("model");
  Vocabulary v;
  expectText(model, "type", "BPE");
  for (const char *field : {"byte_fallback", "fuse_unk"})
    expectFalse(model, field);
  for (const char *field : {"end_of_word_suffix", "continuing_subword_prefix", "unk_token"})
    if (model.has(field) && !model.text(field).empty())
      model.reject(field, "null");
  if (json.has("normalizer"))
    json.reject("normalizer", "null");
  v.wholePieces = model.has("ignore_merges") && model.truth("ignore_merges");
  v.split = json.has("pre_tokenizer") ? splitOf(json.object("pre_tokenizer")) : "";
  addTokens(v, model.object("vocab"), path);
  const Ids ids = idsOf(v);
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
  if (json.has("added_tokens"))
    for (const JsonObject &token : json.objects("added_tokens")) {
      const std::string text = token.text("content");
      addToken(v, token.integer("id"), text, path);
      v.specials.emplace(text, static_cast<int32_t>(token.integer("id")));
    }
  return v;
}

//===-- llm.c ---------------------------------------------------------------------------------------------------===//

void findMerges(Vocabulary &v) {
  const Ids ids = idsOf(v);
  std::unordered_map<std::string, int64_t> ranks; // of a token's bytes, once it is merged
  for (int64_t id = 0; id < v.size(); ++id) {
    const std::string &token = v.tokens[id];
    if (token.size() < 2)
      continue;
    std::vector<std::string> parts;
    for (const char byte : token)
      parts.emplace_back(1, byte);
    while (parts.size() > 2) { // the first of the lowest rank
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

/// The first of 256 numbers (this one, version, tokens, the end of a text), then a byte of length and so many bytes for
/// each token.
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

/// GPT-2's two files by each of their names.
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
    v = path.ends_with(".bin") ? readLlmc(path) : readWhole(path);
  else if (exists(within(path, "tokenizer.json")))
    v = readWhole(within(path, "tokenizer.json"));
  else {
    const auto names = std::find_if(std::begin(pairNames), std::end(pairNames), [&](const auto &pair) {
      return exists(within(path, pair.first)) && exists(within(path, pair.second));
    });
    if (names == std::end(pairNames))
      throw Error(fmt::format("expected a tokenizer in '{}', which is tokenizer.json, or vocab.json and merges.txt, or "
                              "encoder.json and vocab.bpe, but there is none",
                              path));
    v = readPair(within(path, names->first), within(path, names->second));
  }
  verify(v);
  return v;
}

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

void writeVocabulary(const std::string &folder, const Vocabulary &v) {
  Json tokens = Json::object(), pairs = Json::array(), added = Json::array();
  std::string lines = "#version: 0.2\n";
  for (int64_t id = 0; id < v.size(); ++id)
    if (!v.tokens[id].empty())
      tokens[v.specials.contains(v.tokens[id]) ? v.tokens[id] : lettersOf(v.tokens[id])] = id;
  for (const Merge &merge : v.merges) {
    const std::string left = lettersOf(v.tokens[merge.left]), right = lettersOf(v.tokens[merge.right]);
    pairs.push_back(Json::array({left, right}));
    lines += left + " " + right + "\n";
  }
  std::map<int32_t, std::string> specials; // in the order that its readers expect
  for (const auto &[text, id] : v.specials)
    specials.emplace(id, text);
  for (const auto &[id, text] : specials)
    added.push_back({{"id", id},
                     {"content", text},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  const Json letters = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  const Json model = {{"type", "BPE"},          {"dropout", nullptr},
                      {"unk_token", nullptr},   {"continuing_subword_prefix", nullptr},
                      {"fuse_unk", false},      {"end_of_word_suffix", nullptr},
                      {"byte_fallback", false}, {"ignore_merges", v.wholePieces},
                      {"vocab", tokens},        {"merges", pairs}};
  const Json whole = {{"version", "1.0"},          {"truncation", nullptr}, {"padding", nullptr},
                      {"added_tokens", added},     {"normalizer", nullptr}, {"pre_tokenizer", preTokenizer(v.split)},
                      {"post_processor", letters}, {"decoder", letters},    {"model", model}};
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed)
    throw Error(fmt::format("cannot make folder '{}': {}", folder, failed.message()), Fault::device);
  replaceFile(within(folder, "vocab.json"), textOf(tokens));
  replaceFile(within(folder, "merges.txt"), lines);
  replaceFile(within(folder, "tokenizer.json"), textOf(whole));
}

} // namespace kiln
