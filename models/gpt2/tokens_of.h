// Which tokens a model of GPT-2's kind reads and writes: those of a tokenizer in its run's folder or beside its
// weights, else bytes.

#pragma once

#include "models/data/document_index.h"
#include "models/gpt2/config.h"
#include "models/gpt2/pretrained.h"
#include "models/tokens/tokenizer.h"
#include "models/train/language_data.h"

namespace kiln {

/// The tokenizer beside a model: in its folder, or for a checkpoint in its run's. Nothing where there is none: then
/// tokens are bytes. Throws Error for one that is not read.
std::optional<Vocabulary> vocabularyBeside(const Pretrained &model);

/// The tokens that documents begin and end with: <|endoftext|>, or <s> and </s>, or the vocabulary's only special
/// token. Throws Error where there is none.
DocumentMarks documentMarks(const std::optional<Vocabulary> &vocabulary);

/// Has a source's documents become sequences as the settings say, and a model see each document alone where several are
/// packed into one.
void setBatching(LanguageSource &source, Gpt2Config &config, const TrainSettings &settings,
                 const std::optional<Vocabulary> &vocabulary);

/// Throws Error unless the model has a number for every token. Where these are bytes it has no others.
void verifyTokens(const Gpt2Config &config, const std::optional<Vocabulary> &vocabulary);

} // namespace kiln
