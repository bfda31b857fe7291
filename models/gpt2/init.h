// How a run that is not resumed begins: with random weights, or with those that --init names.

#pragma once

#include "models/gpt2/config_json.h"
#include "models/gpt2/network.h"
#include "models/gpt2/options.h"
#include "models/gpt2/pretrained.h"
#include "models/tokens/vocabulary.h"
#include "models/train/trainer.h"

namespace kiln {

class Beginning {
public:
  /// Throws Error when --init contradicts another flag names no model, or one for other tokens.
  explicit Beginning(const TrainOptions &options);

  /// The model's sizes: those of the folder that --init names, which flags may repeat and not change; for a file or
  /// without --init those of the flags.
  const Gpt2Config &config() const { return sizes; }
  /// The tokenizer; nothing where tokens are bytes, or numbers in files.
  const std::optional<Vocabulary> &vocabulary() const { return tokens; }
  /// The settings that the flags describe. What they do not give is the named model's, which for a folder without
  /// --model is the one nearest in size.
  TrainSettings settings() const;
  /// The file of the weights that it begins with; empty when they are random.
  std::string weights() const { return source ? source->weights : ""; }
  /// Gives the trainer of `network` its weights, and an optimiser that has seen nothing.
  void fill(Trainer &trainer, const Network &network, uint64_t seed) const;
  /// What there is to say about it, a line each.
  std::vector<std::string> notes() const;

private:
  bool takesDropout() const;
  bool isFineTuning() const;

  const TrainOptions &options;
  std::optional<Pretrained> source;
  std::optional<Vocabulary> tokens;
  Gpt2Config sizes;
  DropoutOptions asked;
};

} // namespace kiln
