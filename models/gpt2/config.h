// The size of a GPT-2 and the names of the usual ones, and the settings of a training run.

#pragma once

#include "dialect/dsl/Types.h"

namespace kiln {

/// Sizes of a model.
struct Gpt2Config {
  int64_t layers = 0, heads = 0, width = 0;
  int64_t context = 0;        // positions
  int64_t vocab = 256;        // one token a byte
  Type type = f32;            // of weights and activations
  double epsilon = 1e-5;      // LayerNorm adds it to the variance
  bool scalesScores = true;   // attention's, by 1/√headWidth
  bool scalesByLayer = false; // attention's scores, by 1/(block, counted from 1)

  int64_t headWidth() const { return width / heads; }
  /// What attention's scores are multiplied by in block `layer`, counted from 0.
  double scaleOf(int64_t layer) const;
  bool operator==(const Gpt2Config &) const = default;
};

/// Throws Error unless every size and the epsilon is positive and the heads divide the width.
void verify(const Gpt2Config &config);
/// Throws Error unless one token is one byte. Text needs that: there is no tokenizer yet.
void verifyBytes(const Gpt2Config &config);
/// `4 layers, 4 heads, width 128, context 64, vocabulary 256`.
std::string textOf(const Gpt2Config &config);

/// Parameters of the model, embeddings included.
int64_t parameterCount(const Gpt2Config &config);
/// Floating-point operations of one training step on `batch` sequences: 6 a parameter and token in matrix products (the
/// head included, the embeddings not) and the causal half of attention's products, forward and backward.
double flopsOfStep(const Gpt2Config &config, int64_t sequences);

/// Settings of a training run. Everything that its result depends on is here.
struct TrainSettings {
  int64_t batch = 0;      // sequences in a micro-batch
  int64_t accumulate = 1; // micro-batches in a step
  int64_t steps = 0;
  int64_t warmup = 0;     // steps of linear warm-up
  double rate = 0;        // highest learning rate
  double finalRate = 0.1; // lowest, as a share of the highest
  double decay = 0.1, beta1 = 0.9, beta2 = 0.99, epsilon = 1e-8;
  double clip = 1.0;         // largest gradient norm
  int64_t evaluateEvery = 0; // steps between validation losses; 0: at the end only
  uint64_t seed = 1;
};

/// Throws Error for a setting out of its range.
void verify(const TrainSettings &settings);
/// Throws Error for a number of sequences that no step can have.
void verifyBatch(int64_t sequences);

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

/// Learning rate of update `step` (from 0): linear warm-up, then a cosine down to finalRate · rate at the last step.
double learningRate(const TrainSettings &settings, int64_t step);

} // namespace kiln
