// The config of a GPT-2 and its variants.

#pragma once

#include "dialect/dsl/Types.h"
#include "models/nn/dropout.h"
#include "models/train/settings.h"

namespace kiln {

/// Differences from Hugging Face's GPT-2.
struct Gpt2Form {
  int ddof = 0;               // LayerNorm: the variance divides by the width minus this
  bool scalesTokens = false;  // multiplies token embeddings by √width
  bool projectionBias = true; // biases of attention's projections
  bool headBias = false;
  bool mlpFirst = false;  // the MLP comes before attention in a block
  bool lecunInit = false; // initialises linear weights by LeCun; otherwise with GPT-2's deviations
  bool operator==(const Gpt2Form &) const = default;
};

/// The config of a model.
struct Gpt2Config {
  int64_t layers = 0, heads = 0, width = 0;
  int64_t context = 0;        // positions
  int64_t vocab = 256;        // tokens: 256 bytes, or a tokenizer's
  Type type = f32;            // of weights and activations
  double epsilon = 1e-5;      // of LayerNorm, added to the variance
  bool scalesScores = true;   // scales attention scores by 1/√headWidth
  bool scalesByLayer = false; // scales attention scores by 1/(number of the block, from 1)
  DropoutOptions dropout = {};
  AttentionForm attention = AttentionForm::flash;
  bool givesRanges = false, givesPositions = false; // batches carry visible ranges, and positions
  DecayOn decayOn = DecayOn::matrices;
  double smoothing = 0; // label smoothing in the training loss
  int64_t inner = 0;    // of the MLP; 0: four times the width
  bool tied = true;     // the head is the token table
  Gpt2Form form = {};

  int64_t innerWidth() const { return inner == 0 ? 4 * width : inner; }
  int64_t headWidth() const { return width / heads; }
  /// The scale of attention scores in block `layer`, counted from 0.
  double scaleOf(int64_t layer) const;
  bool operator==(const Gpt2Config &) const = default;
};

/// Throws Error unless every size is positive, the heads divide the width, and epsilon is in (0, 1], or 0 for a form
/// that Hugging Face does not have.
void verify(const Gpt2Config &config);
/// Throws Error unless the vocabulary is the 256 bytes. Text without a tokenizer needs that.
void verifyBytes(const Gpt2Config &config);
/// `4 layers, 4 heads, width 128, context 64, vocabulary 256`.
std::string textOf(const Gpt2Config &config);

/// Number of parameters, embeddings included.
int64_t parameterCount(const Gpt2Config &config);
/// Floating-point operations of one training step on `batch` sequences: 6 a parameter and token in matrix products (the
/// head included, the embeddings not) and the causal half of attention's products, forward and backward.
double flopsOfStep(const Gpt2Config &config, int64_t sequences, int64_t length, double attentionShare = 1);
inline double flopsOfStep(const Gpt2Config &config, int64_t sequences) {
  return flopsOfStep(config, sequences, config.context);
}

} // namespace kiln
