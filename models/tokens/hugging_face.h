// Hugging Face's tokenizer.json.

#pragma once

#include "models/tokens/vocabulary.h"

#include <nlohmann/json.hpp>

namespace kiln {

/// Reads the file as a vocabulary. Throws Error for a damaged file, and, by the field's name, for unsupported features.
Vocabulary readTokenizerJson(const std::string &path);
/// The vocabulary as tokenizer.json.
nlohmann::ordered_json tokenizerJson(const Vocabulary &vocabulary);

/// The tokens and their numbers, as in tokenizer.json and vocab.json.
nlohmann::ordered_json tokenList(const Vocabulary &vocabulary);
/// A token as these files show it; style bytes uses GPT-2's letters.
std::string shownToken(const Vocabulary &vocabulary, int32_t id);

} // namespace kiln
