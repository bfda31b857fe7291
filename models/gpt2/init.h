// The start of a new run: random weights, or those of --init.

#pragma once

#include "models/gpt2/commands.h"
#include "models/gpt2/config_json.h"
#include "models/gpt2/network.h"
#include "models/gpt2/pretrained.h"
#include "models/tokens/vocabulary.h"
#include "models/train/trainer.h"

namespace kiln {

class Beginning {
public:
  /// Throws Error if --init contradicts another flag, names no model, or a model for other tokens.
  explicit Beginning(const TrainOptions &options);

  /// The model's config: that of the --init folder, which flags may repeat and not change; for a file or without --init
  /// that of the flags.
  const Gpt2Config &config() const { return sizes; }
  /// The tokenizer; none for bytes, and for token files without one.
  const std::optional<Vocabulary> &vocabulary() const { return tokens; }
  /// The settings of the flags. The rest come from the named preset; for a folder without --model from the preset
  /// nearest in size.
  TrainSettings settings() const;
  /// The file of the initial weights; empty if they are random.
  std::string weights() const { return source ? source->weights : ""; }
  /// Gives the trainer of `network` its weights, with a fresh optimizer state.
  void fill(Trainer &trainer, const Network &network, uint64_t seed) const;
  /// Notes about the start, a line each.
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
