// Lists of tokens and merges, checked on insertion.

#include "models/tokens/token_lists.h"
#include "dialect/dsl/Types.h"

#include <algorithm>
#include <fmt/format.h>

namespace kiln {

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
    return bytesOf(text, bytes) && !bytes.empty();
  bytes = text;
  return true;
}

void addTokens(Vocabulary &v, const JsonObject &json, const std::string &path) {
  std::string bytes;
  for (const std::string &name : json.names())
    addToken(v, json.integer(name), bytesIn(v.style, name, bytes) ? bytes : name, path);
}

TokenIds idsOf(const Vocabulary &v) {
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

} // namespace kiln
