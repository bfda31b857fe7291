// Tokenizers in files: a folder with Hugging Face's tokenizer.json, or with GPT-2's vocab.json and merges.txt (which
// are encoder.json and vocab.bpe, too), or llm.c's tokenizer file.

#pragma once

#include "models/tokens/vocabulary.h"

namespace kiln {

/// What `--tokens` names: `bytes`, a folder, a tokenizer.json, or llm.c's .bin. Throws Error for files that are none,
/// are torn, or do not belong together, and for what this tokenizer does not do.
Vocabulary readVocabulary(const std::string &path);

/// Whether the file is a tokenizer of llm.c.
bool isLlmcTokenizer(const std::string &path);

/// Whether the folder has such files.
bool hasVocabulary(const std::string &folder);

/// Writes tokenizer.json, and of bytes vocab.json and merges.txt, too, as Hugging Face reads them, to a folder, which
/// is made where there is none.
void writeVocabulary(const std::string &folder, const Vocabulary &vocabulary);

/// The merges that make the tokens, where these are numbered in the order in which they are merged: each is cut into
/// the two that the earlier merges leave of its bytes. Tokens that are not two parts are special.
void findMerges(Vocabulary &vocabulary);

} // namespace kiln
