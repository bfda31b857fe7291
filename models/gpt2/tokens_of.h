// The tokens of a GPT-2 model: those of a tokenizer in its run's folder or next to its weights, otherwise bytes.

#pragma once

#include "models/data/document_index.h"
#include "models/gpt2/config.h"
#include "models/gpt2/pretrained.h"
#include "models/tokens/tokenizer.h"
#include "models/train/language_data.h"

namespace kiln {

/// The tokenizer of a model: in its folder, or for a checkpoint in its run's folder. None: tokens are bytes. Throws
/// Error for an unreadable one.
std::optional<Vocabulary> vocabularyBeside(const Pretrained &model);

/// The special tokens of documents: <|endoftext|>, or <s> and </s>, or the vocabulary's only special token. Throws
/// Error if there is none.
DocumentMarks documentMarks(const std::optional<Vocabulary> &vocabulary);

/// Sets how a source's documents become sequences, from the settings. If several are packed into one sequence, the
/// model gets ranges and positions, so that no document attends to another.
void setBatching(LanguageSource &source, Gpt2Config &config, const TrainSettings &settings,
                 const std::optional<Vocabulary> &vocabulary);

/// Throws Error unless the model's vocabulary has every token. If tokens are bytes, the vocabulary must be 256.
void verifyTokens(const Gpt2Config &config, const std::optional<Vocabulary> &vocabulary);

} // namespace kiln
