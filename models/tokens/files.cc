// Reads and writes vocabularies.

#include "models/tokens/files.h"
#include "dialect/dsl/Types.h"
#include "models/data/files.h"
#include "models/tokens/hugging_face.h"
#include "runtime/Files.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>

namespace kiln {

namespace fs = std::filesystem;

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
