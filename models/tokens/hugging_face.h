// Hugging Face's tokenizer.json, and the lists of tokens and merges that tokenizer files share.

#pragma once

#include "models/data/json.h"
#include "models/tokens/vocabulary.h"

#include <nlohmann/json.hpp>
#include <unordered_map>

namespace kiln {

//===-- Lists ---------------------------------------------------------------------------------------------------===//
// Common parts of tokenizer files: lists of tokens with their numbers, and of merged pairs. Byte tokens are written in
// GPT-2's letters (bytesToLetters), words as they are.

using TokenIds = std::unordered_map<std::string, int32_t>;
/// The number of each token; the lowest if several have equal bytes.
TokenIds findTokenIds(const Vocabulary &vocabulary);

/// Sets token `id` to `bytes`. Throws Error, which names the file `path`, if it is taken or too large.
void addToken(Vocabulary &vocabulary, int64_t id, const std::string &bytes, const std::string &path);
/// Adds the tokens of a JSON object of letters and numbers.
void addTokens(Vocabulary &vocabulary, const JsonObject &json, const std::string &path);
/// Adds the merge of two tokens in letters; `where` is its place in the file.
void addMerge(Vocabulary &vocabulary, const TokenIds &ids, const std::string &left, const std::string &right,
              const std::string &where);
/// Marks as special the tokens longer than a byte that no merge makes.
void findSpecials(Vocabulary &vocabulary);

//===-- tokenizer.json ------------------------------------------------------------------------------------------===//

/// Reads the file as a vocabulary. Throws Error for a damaged file, and, by the field's name, for unsupported features.
Vocabulary readTokenizerJson(const std::string &path);
/// The vocabulary as tokenizer.json.
nlohmann::ordered_json tokenizerJson(const Vocabulary &vocabulary);

/// The tokens and their numbers, as in tokenizer.json and vocab.json.
nlohmann::ordered_json tokenList(const Vocabulary &vocabulary);
/// A token as these files show it; style bytes uses GPT-2's letters.
std::string shownToken(const Vocabulary &vocabulary, int32_t id);

} // namespace kiln
