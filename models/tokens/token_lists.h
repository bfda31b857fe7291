// Common parts of tokenizer files: lists of tokens with their numbers, and of merged pairs. Byte tokens are written in
// GPT-2's letters (lettersOf), words as they are.

#pragma once

#include "models/data/json.h"
#include "models/tokens/vocabulary.h"

#include <unordered_map>

namespace kiln {

using TokenIds = std::unordered_map<std::string, int32_t>;
/// The number of each token; the lowest if several have equal bytes.
TokenIds idsOf(const Vocabulary &vocabulary);

/// Sets token `id` to `bytes`. Throws Error, which names the file `path`, if it is taken or too large.
void addToken(Vocabulary &vocabulary, int64_t id, const std::string &bytes, const std::string &path);
/// Adds the tokens of a JSON object of letters and numbers.
void addTokens(Vocabulary &vocabulary, const JsonObject &json, const std::string &path);
/// Adds the merge of two tokens in letters; `where` is its place in the file.
void addMerge(Vocabulary &vocabulary, const TokenIds &ids, const std::string &left, const std::string &right,
              const std::string &where);
/// Marks as special the tokens longer than a byte that no merge makes.
void findSpecials(Vocabulary &vocabulary);

} // namespace kiln
