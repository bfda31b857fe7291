// Loads a trained model into host memory: finds the folder or file that a user names, and reads weights and tokenizer.

#pragma once

#include "models/data/documents.h"
#include "models/gpt2/config.h"
#include "models/tokens/tokenizer.h"
#include "models/tokens/vocabulary.h"
#include "models/train/checkpoint.h"
#include "models/train/language_data.h"
#include "models/train/settings.h"

#include <optional>
#include <string>

namespace kiln {

//===-- What a user names ---------------------------------------------------------------------------------------===//
// A trained model as a user names it: a run's folder, a checkpoint, a Hugging Face folder, or a safetensors file.

struct Pretrained {
  std::string weights;               // the safetensors file
  std::optional<std::string> folder; // with config.json and the weights; none for a single file
};

/// The model that `path` names; for a run's folder its newest checkpoint. Throws Error if there is none, or one in
/// shards or pickled, with a hint how to convert it.
Pretrained pretrainedAt(const std::string &path);

/// Throws Error if the folder is a checkpoint and one of its files has changed.
void verifyWhole(const Pretrained &model);

//===-- Weights -------------------------------------------------------------------------------------------------===//
// Weights in files: safetensors with the names and shapes of Hugging Face's GPT-2, read into a flat buffer.

/// Reads the weights of the safetensors file `path` into a flat buffer of `type`. Names may have Hugging Face's prefix
/// `transformer.`. Two kinds of extra tensors are accepted. One is the constant masks of older GPT-2 files
/// (h.0.attn.bias, h.0.attn.masked_bias). The other is, for a tied model, a `lm_head.weight` that equals wte.weight.
/// Throws Error with the names of missing or unknown tensors.
std::vector<char> readWeights(const std::string &path, const ParameterList &list, Type type);

//===-- Tokens --------------------------------------------------------------------------------------------------===//
// The tokens of a GPT-2 model: those of a tokenizer in its run's folder or next to its weights, otherwise bytes.

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

//===-- All of it -----------------------------------------------------------------------------------------------===//

struct TrainedModel {
  Gpt2Config config;
  std::vector<char> weights = {};            // of config.type, laid out as the network's parameters
  std::optional<Vocabulary> vocabulary = {}; // none: tokens are bytes
  TrainSettings settings = {};               // of its run; defaults if there is no run
};

/// Reads the model in a run's folder, a checkpoint, or a Hugging Face folder, as `dtype` (default fp32). If a running
/// trainer removes the newest checkpoint meanwhile, the next one is read. For a damaged checkpoint the error names an
/// earlier undamaged one. A model of token files may lack its tokenizer: before text is read, verifyTokens() is called.
TrainedModel readTrained(const std::string &folder, const std::optional<std::string> &dtype);

} // namespace kiln
