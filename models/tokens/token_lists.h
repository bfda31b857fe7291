// What files of tokenizers have in common: lists of tokens with their numbers, and of the pairs that are merged. Tokens
// of bytes stand there in GPT-2's letters (lettersOf), words as they are.

#pragma once

#include "models/data/json.h"
#include "models/tokens/vocabulary.h"

#include <unordered_map>

namespace kiln {

using TokenIds = std::unordered_map<std::string, int32_t>;
/// The number of each token, the lowest where several have its bytes.
TokenIds idsOf(const Vocabulary &vocabulary);

/// Puts a token of `bytes` in the place of `id`. Throws Error, which names the file `path`, where there is another one
/// or too large a number.
void addToken(Vocabulary &vocabulary, int64_t id, const std::string &bytes, const std::string &path);
/// The tokens that an object of letters and numbers names.
void addTokens(Vocabulary &vocabulary, const JsonObject &json, const std::string &path);
/// Adds the merge of two tokens in letters, which `where` has.
void addMerge(Vocabulary &vocabulary, const TokenIds &ids, const std::string &left, const std::string &right,
              const std::string &where);
/// Counts as special the tokens that are more than a byte and that no merge makes.
void findSpecials(Vocabulary &vocabulary);

} // namespace kiln
