// Tokenizer files: a folder with Hugging Face's tokenizer.json, or with GPT-2's vocab.json and merges.txt (or
// encoder.json and vocab.bpe), or llm.c's tokenizer file.

#pragma once

#include "models/tokens/vocabulary.h"

namespace kiln {

/// Reads the tokenizer that `--tokens` names: `bytes`, a folder, a tokenizer.json, or llm.c's .bin. Throws Error for
/// files that are missing, damaged or inconsistent, and for unsupported features.
Vocabulary readVocabulary(const std::string &path);

/// Whether the file is a tokenizer of llm.c.
bool isLlmcTokenizer(const std::string &path);

/// Whether the folder has such files.
bool hasVocabulary(const std::string &folder);

/// Writes tokenizer.json, and for style bytes vocab.json and merges.txt too, as Hugging Face reads them. The folder is
/// created if needed.
void writeVocabulary(const std::string &folder, const Vocabulary &vocabulary);

/// Reconstructs the merges of tokens that are numbered in merge order: each token is cut into the two that earlier
/// merges leave of its bytes. Tokens without such a cut are special.
void findMerges(Vocabulary &vocabulary);

} // namespace kiln
