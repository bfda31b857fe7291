// Tokenizers as Hugging Face's tokenizer.json has them.

#pragma once

#include "models/tokens/vocabulary.h"

#include <nlohmann/json.hpp>

namespace kiln {

/// The file as a vocabulary. Throws Error for what is torn, and, by the field's name, for what is not done here.
Vocabulary readTokenizerJson(const std::string &path);
/// What such a file says of the vocabulary.
nlohmann::ordered_json tokenizerJson(const Vocabulary &vocabulary);

/// The tokens and their numbers, as the file, and vocab.json, have them.
nlohmann::ordered_json tokenList(const Vocabulary &vocabulary);
/// A token there: of bytes in GPT-2's letters.
std::string shownToken(const Vocabulary &vocabulary, int32_t id);

} // namespace kiln
