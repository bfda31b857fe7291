// Reads and writes lists of tokens, and tokenizer.json.

#include "models/tokens/hugging_face.h"
#include "dialect/dsl/Types.h"
#include "models/tokens/split.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

namespace kiln {

//===-- Lists ---------------------------------------------------------------------------------------------------===//

/// The largest token number in a file.
static constexpr int64_t mostTokens = int64_t{1} << 24;

void addToken(Vocabulary &v, int64_t id, const std::string &bytes, const std::string &path) {
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

void addTokens(Vocabulary &v, const JsonObject &json, const std::string &path) {
  std::string bytes;
  for (const std::string &name : json.names())
    addToken(v, json.integer(name), bytesIn(v.style, name, bytes) ? bytes : name, path);
}

TokenIds findTokenIds(const Vocabulary &v) {
  TokenIds ids;
  for (int64_t id = v.size(); id-- > 0;)
    if (!v.tokens[id].empty())
      ids[v.tokens[id]] = static_cast<int32_t>(id);
  return ids;
}

void addMerge(Vocabulary &v, const TokenIds &ids, const std::string &left, const std::string &right,
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

void findSpecials(Vocabulary &v) {
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

Vocabulary readTokenizerJson(const std::string &path) {
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

Json tokenList(const Vocabulary &v) {
  Json tokens = Json::object();
  auto &list = tokens.get_ref<Json::object_t &>(); // its operator[] is a linear search
  list.reserve(v.size());
  std::set<std::string_view> known;
  for (int64_t id = 0; id < v.size(); ++id)
    if (!v.tokens[id].empty() && known.insert(v.tokens[id]).second) // the lowest number of a duplicate
      list.emplace_back(v.specials.contains(v.tokens[id]) ? v.tokens[id] : shownToken(v, static_cast<int32_t>(id)), id);
  return tokens;
}

std::string shownToken(const Vocabulary &v, int32_t id) {
  return v.style == TokenStyle::bytes ? bytesToLetters(v.tokens[id]) : v.tokens[id];
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

Json tokenizerJson(const Vocabulary &v) {
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

} // namespace kiln
