// The config of a GPT-2 and its variants, its config.json, and presets.

#pragma once

#include "dialect/dsl/Types.h"
#include "models/nn/dropout.h"
#include "models/train/settings.h"

#include <nlohmann/json_fwd.hpp>

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
  double attentionScale(int64_t layer) const;
  bool operator==(const Gpt2Config &) const = default;
};

/// Throws Error unless every size is positive, the heads divide the width, and epsilon is in (0, 1]. For a form that
/// Hugging Face does not have, epsilon may be 0.
void verify(const Gpt2Config &config);
/// Throws Error unless the vocabulary is the 256 bytes. Text without a tokenizer needs that.
void verifyBytes(const Gpt2Config &config);
/// `4 layers, 4 heads, width 128, context 64, vocabulary 256`.
std::string textOf(const Gpt2Config &config);

/// Number of parameters, embeddings included.
int64_t parameterCount(const Gpt2Config &config);
/// Floating-point operations of one training step on `batch` sequences. They are 6 per parameter and token in matrix
/// products, with the head and without the embeddings. The causal half of attention's products is added, forward and
/// backward.
double flopsOfStep(const Gpt2Config &config, int64_t sequences, int64_t length, double attentionShare = 1);
inline double flopsOfStep(const Gpt2Config &config, int64_t sequences) {
  return flopsOfStep(config, sequences, config.context);
}

//===-- config.json ---------------------------------------------------------------------------------------------===//
// config.json, the file next to a model's weights that describes the model, as in Hugging Face's library.

/// The config.json of a model with weights of type `saved`. Hugging Face's library would compute some models
/// differently: a variant, and a model of plain dropout, which scales in evaluation. It would ignore the additional
/// parameters of a model with more of them (`hasMore`). These have a model_type of their own, which that library
/// refuses.
nlohmann::ordered_json configJson(const Gpt2Config &config, Type saved = f32, bool hasMore = false);

/// Reads the model of config.json in `folder`, a checkpoint or a Hugging Face model. Throws Error that names the field
/// for unsupported values and unknown fields. The type of the weights there is ignored.
Gpt2Config readConfig(const std::string &folder);

/// Reads the training dropout of config.json in `folder`: embd_pdrop, resid_pdrop and attn_pdrop, 0 if missing, and
/// Kiln's own mlp_pdrop and dropout_kind.
DropoutOptions dropoutIn(const std::string &folder);

//===-- Presets -------------------------------------------------------------------------------------------------===//

/// A preset.
struct NamedGpt2 {
  Gpt2Config config;
  TrainSettings settings;
};
/// The presets: `nano`; `d2` … `d48` by depth (d12, d24, d36 and d48 are OpenAI's four sizes). `llmc-124m` is d12 with
/// llm.c's settings. `annotated`, `mlp-first` and their `-small` forms are GPT-2 variants. Throws Error with all names
/// for another one.
NamedGpt2 gpt2Named(const std::string &name);
/// The name of the preset among nano … d48 with the nearest number of parameters, by ratio.
std::string nearestGpt2(const Gpt2Config &config);
/// All names of presets.
std::vector<std::string> gpt2Names();

} // namespace kiln
