// The size of a GPT-2, and what it does otherwise than others of its kind.

#pragma once

#include "dialect/dsl/Types.h"
#include "models/nn/dropout.h"
#include "models/train/settings.h"

namespace kiln {

/// What Hugging Face's GPT-2 has one way and relatives of it another.
struct Gpt2Form {
  int ddof = 0;               // LayerNorm divides by the root of the variance over the width less that
  bool scalesTokens = false;  // rows of the token table, by √width
  bool projectionBias = true; // of attention's projections
  bool headBias = false;
  bool mlpFirst = false;  // in a block, before attention
  bool lecunInit = false; // of products, which otherwise begin with GPT-2's deviations
  bool operator==(const Gpt2Form &) const = default;
};

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
  DecayOn decayOn = DecayOn::matrices;
  double smoothing = 0; // of labels, in the loss to train by
  int64_t inner = 0;    // of the feed-forward layers; 0: four times the width
  bool tied = true;     // the head is the table of tokens
  Gpt2Form form = {};

  int64_t innerWidth() const { return inner == 0 ? 4 * width : inner; }
  int64_t headWidth() const { return width / heads; }
  /// What attention's scores are multiplied by in block `layer`, counted from 0.
  double scaleOf(int64_t layer) const;
  bool operator==(const Gpt2Config &) const = default;
};

/// Throws Error unless every size is positive, the heads divide the width, and the epsilon is above 0 (or 0, which
/// Hugging Face's form divides by) and at most 1.
void verify(const Gpt2Config &config);
/// Throws Error unless there is a token for each byte and no other. Text needs that where there is no tokenizer.
void verifyBytes(const Gpt2Config &config);
/// `4 layers, 4 heads, width 128, context 64, vocabulary 256`.
std::string textOf(const Gpt2Config &config);

/// Parameters of the model, embeddings included.
int64_t parameterCount(const Gpt2Config &config);
/// Floating-point operations of one training step on `batch` sequences: 6 a parameter and token in matrix products (the
/// head included, the embeddings not) and the causal half of attention's products, forward and backward.
double flopsOfStep(const Gpt2Config &config, int64_t sequences, int64_t length, double attentionShare = 1);
inline double flopsOfStep(const Gpt2Config &config, int64_t sequences) {
  return flopsOfStep(config, sequences, config.context);
}

} // namespace kiln
