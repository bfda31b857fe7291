// The settings of a training run. With model and data they determine its result.

#pragma once

#include "kernels/attention.h"
#include "kernels/rounding.h"
#include "models/nn/dropout.h"
#include "models/nn/parameters.h"
#include "models/nn/recompute.h"

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace kiln {

class JsonObject;

/// How a text becomes sequences: consecutive and cut anywhere; one document each, padded; or several documents each,
/// packed without seeing each other.
enum class Batching { stream, padded, packed };
inline constexpr std::array<const char *, 3> batchingNames = {"stream", "padded", "packed"};

/// The order of a stream's sequences: shuffled, or as in llm.c's loader (models/data/batches.h).
enum class DataOrder { shuffled, llmc };
inline constexpr std::array<const char *, 2> dataOrderNames = {"shuffled", "llmc"};

/// Positions of packed documents: through the sequence, or from 0 in each document.
enum class Positions { runOn, restart };
inline constexpr std::array<const char *, 2> positionsNames = {"run-on", "restart"};

/// The learning-rate schedule after the warm-up. cosine and linear end at finalRate after the last step; cosine_closed
/// ends there at the last step. constant does not decay. noam is the inverse square root of the step (Vaswani et al.
/// 2017, (3), with d_model^−½ as a part of the peak rate). wsd (warm-up, stable, decay; Hägele et al. 2024) decays over
/// the last fifth as 1 − √x. exponential multiplies by one factor each step, down to finalRate after the last.
enum class Schedule { cosine_closed, cosine, linear, constant, noam, wsd, exponential };
inline constexpr std::array<const char *, 7> scheduleNames = {"cosine-closed", "cosine", "linear",     "constant",
                                                              "noam",          "wsd",    "exponential"};

struct TrainSettings {
  int64_t batch = 0;        // sequences in a micro-batch
  int64_t batchTokens = 0;  // most positions of a micro-batch, for data that batches by length; 0: any
  int64_t accumulate = 1;   // micro-batches in a step
  int64_t parts = 1;        // pieces that each requested micro-batch was cut into, for ranks: divide()
  Recompute recompute = {}; // activations that the backward pass recomputes
  int64_t lossChunks = 1;   // chunks of a micro-batch's positions; the logits of one are in memory at a time
  int64_t bucket = 0;       // elements of a gradient bucket that ranks exchange at once, about; 0: Shards::usualBucket
  int64_t steps = 0;
  int64_t warmup = 0;     // steps of linear warm-up
  double rate = 0;        // peak learning rate
  double finalRate = 0.1; // lowest, as a share of the peak
  Schedule schedule = Schedule::cosine_closed;
  DecayOn decayOn = DecayOn::matrices;
  double decay = 0.1, beta1 = 0.9, beta2 = 0.99, epsilon = 1e-8;
  double clip = 1.0; // gradient clipping: largest norm; 0: off
  double skipLossZ = 0,
         skipNormZ = 0; // standard deviations above which a step is skipped (kernels/outliers.h); 0: never
  bool leavesOutliers() const { return skipLossZ > 0 || skipNormZ > 0; }
  double dropout = 0; // rate of the next two, if they are below 0
  double dropoutEmbedding = -1, dropoutResidual = -1;
  double dropoutActivation = 0, dropoutAttention = 0;
  DropoutKind dropoutKind = DropoutKind::inverted;
  double smoothing = 0; // label smoothing in the training loss
  AttentionForm attention = AttentionForm::flash;
  Batching batching = Batching::stream;
  DataOrder order = DataOrder::shuffled;
  double pack = 0.75; // documents are added to a packed sequence while less than this fraction is full
  Positions positions = Positions::restart;
  int64_t evaluateEvery = 0;     // steps between validation losses; 0: only at the end
  int64_t evaluateSequences = 0; // of a validation loss; 0: all
  bool evaluateAll = false;      // the last validation loss uses all micro-batches
  int64_t samples = 0;           // texts shown at each evaluation
  int64_t gradientNorms = 0;     // steps between logs of gradient norms by part; 0: never
  uint64_t seed = 1;
  std::optional<Precision> precision = {}; // of fp32 GEMMs; default: the machine's
  Type type = f32;                         // of weights, activations and their gradients
  bool master = true;                      // AdamW updates fp32 master weights, which narrow ones are copied from
  WeightRounding rounding = WeightRounding::nearest; // of narrow weights without master weights
  double lossScale = 65536;                          // initial loss scale of f16, a power of two
  int64_t scaleWindow = 2000;                        // updates in a row that double it; 0: it never grows
  Type saveType = f32;                               // of the weights in model.safetensors
  int64_t saveEvery = 1000;                          // steps between checkpoints; 0: only at the end
  int64_t keep = 2;                                  // newest checkpoints to keep
  int64_t keepEvery = 0;                             // checkpoints at multiples of it are kept as well; 0: none
};

/// `fp32`, `bf16` or `fp16`: the user's names of weight and activation types.
const char *dtypeName(Type type);
/// The type with that name. Throws Error, which names `flag`, for another text.
Type dtypeNamed(const std::string &flag, const std::string &text);

/// Throws Error for a setting out of its range.
void verify(const TrainSettings &settings);

/// Larger sizes are typing errors, and planning such a model would take all memory before any message. Products of
/// three of them fit into 64 bits.
inline constexpr int64_t largestSize = int64_t{1} << 20;
/// Throws Error unless `value`, called `name` in the message, is from 1 to `most`.
void expectBetween(const char *name, int64_t value, int64_t most);

/// The settings as JSON for a checkpoint, and back. Throws Error for a missing field or one of another kind.
nlohmann::ordered_json settingsJson(const TrainSettings &settings);
TrainSettings settingsFrom(const JsonObject &json);

/// Learning rate of update `step` (from 0): linear warm-up, then the schedule down to finalRate · rate.
double learningRate(const TrainSettings &settings, int64_t step);

//===-- Configs of models ---------------------------------------------------------------------------------------===//
// Applies a run's settings and size flags to the config of any model.

/// The dropout rates of the settings; a rate below 0 is replaced by the general one.
inline DropoutOptions getDropout(const TrainSettings &s) {
  const auto orGeneral = [&](double chance) { return chance < 0 ? s.dropout : chance; };
  return {orGeneral(s.dropoutEmbedding), orGeneral(s.dropoutResidual), s.dropoutActivation, s.dropoutAttention,
          s.dropoutKind};
}

/// The config with its type and all that the settings decide.
template <class Config> Config configured(Config config, const TrainSettings &settings) {
  config.type = settings.type;
  config.dropout = getDropout(settings);
  config.attention = settings.attention;
  config.decayOn = settings.decayOn;
  config.smoothing = settings.smoothing;
  return config;
}

/// Throws Error unless every size is positive and the heads divide the width.
template <class Config> void verifySizes(const Config &c, int64_t inner, int64_t mostLayers = largestSize) {
  expectBetween("layers", c.layers, mostLayers);
  expectBetween("heads", c.heads, largestSize);
  expectBetween("width", c.width, largestSize);
  expectBetween("inner", inner, largestSize);
  expectBetween("context", c.context, largestSize);
  if (c.width % c.heads != 0)
    throw Error("expected the number of heads to divide the width, but got " + std::to_string(c.heads) +
                " heads and width " + std::to_string(c.width));
}

/// Replaces sizes of the config by those of the options.
template <class Config, class Options> void replaceSizes(Config &config, const Options &options) {
  config.layers = options.layers.value_or(config.layers);
  config.heads = options.heads.value_or(config.heads);
  config.width = options.width.value_or(config.width);
  config.inner = options.inner.value_or(config.inner);
  config.context = options.context.value_or(config.context);
}

/// Throws Error unless the flags ask for the model that `where` has; they may repeat it, but not change it.
template <class Config>
void expectModel(bool isSame, const std::string &where, const Config &held, const Config &asked) {
  if (!isSame)
    throw Error(where + " has " + textOf(held) + ", but the flags ask for " + textOf(asked));
}

/// Takes sizes and form from another config, such as a preset's. Vocabulary and training settings stay.
template <class Config> void takeSizes(Config &config, const Config &other) {
  config.layers = other.layers;
  config.heads = other.heads;
  config.width = other.width;
  config.inner = other.inner;
  config.context = other.context;
  config.form = other.form;
}

} // namespace kiln
