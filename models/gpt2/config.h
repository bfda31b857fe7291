// The size of a GPT-2, and the names of the usual ones with settings that train them.

#pragma once

#include "dialect/dsl/Types.h"
#include "models/nn/dropout.h"
#include "models/train/settings.h"

namespace kiln {

/// Sizes of a model.
struct Gpt2Config {
  int64_t layers = 0, heads = 0, width = 0;
  int64_t context = 0;        // positions
  int64_t vocab = 256;        // tokens: one a byte, or a tokenizer's
  Type type = f32;            // of weights and activations
  double epsilon = 1e-5;      // LayerNorm adds it to the variance
  bool scalesScores = true;   // attention's, by 1/√headWidth
  bool scalesByLayer = false; // attention's scores, by 1/(block, counted from 1)
  DropoutOptions dropout = {};
  AttentionForm attention = AttentionForm::flash;
  bool givesRanges = false, givesPositions = false; // a batch says what its places see, and where they are

  int64_t headWidth() const { return width / heads; }
  /// What attention's scores are multiplied by in block `layer`, counted from 0.
  double scaleOf(int64_t layer) const;
  bool operator==(const Gpt2Config &) const = default;
};

/// Throws Error unless every size and the epsilon is positive and the heads divide the width.
void verify(const Gpt2Config &config);
/// Throws Error unless there is a token for each byte and no other. Text needs that where there is no tokenizer.
void verifyBytes(const Gpt2Config &config);
/// `4 layers, 4 heads, width 128, context 64, vocabulary 256`.
std::string textOf(const Gpt2Config &config);

/// Parameters of the model, embeddings included.
int64_t parameterCount(const Gpt2Config &config);
/// Floating-point operations of one training step on `batch` sequences: 6 a parameter and token in matrix products (the
/// head included, the embeddings not) and the causal half of attention's products, forward and backward.
double flopsOfStep(const Gpt2Config &config, int64_t sequences, int64_t length);
inline double flopsOfStep(const Gpt2Config &config, int64_t sequences) {
  return flopsOfStep(config, sequences, config.context);
}

/// A size with a name, and settings that train it reasonably.
struct NamedGpt2 {
  Gpt2Config config;
  TrainSettings settings;
};
/// `nano`, or `d2` … `d48` by depth (d12, d24, d36 and d48 are OpenAI's four); throws Error with the names there are.
NamedGpt2 gpt2Named(const std::string &name);
/// The name of the model whose number of parameters is nearest, by ratio.
std::string nearestGpt2(const Gpt2Config &config);
/// All names that gpt2Named knows.
std::vector<std::string> gpt2Names();

} // namespace kiln
