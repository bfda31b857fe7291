// The settings of a training run: all that its result depends on beside model and data.

#pragma once

#include "kernels/attention.h"
#include "kernels/rounding.h"
#include "models/nn/recompute.h"
#include "models/nn/role.h"

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>

namespace kiln {

class JsonObject;

/// How a text becomes sequences: one behind the other, whatever they cut; each document alone, and padded; or several
/// documents in one, none of which sees another.
enum class Batching { stream, padded, packed };
inline constexpr std::array<const char *, 3> batchingNames = {"stream", "padded", "packed"};

/// In which order the sequences of a stream are taken: random, or as llm.c's loader takes them (models/data/batches.h).
enum class DataOrder { shuffled, llmc };
inline constexpr std::array<const char *, 2> dataOrderNames = {"shuffled", "llmc"};

/// How the places of packed documents are numbered: through the sequence, or each document from 0.
enum class Positions { runOn, restart };
inline constexpr std::array<const char *, 2> positionsNames = {"run-on", "restart"};

/// How the learning rate falls behind the warm-up: along a cosine or a straight line, which end at finalRate behind the
/// last step, or closed, at the last step; not at all; as one over the root of the steps (Vaswani et al. 2017, (3),
/// whose d_model^−½ is a part of the highest rate); over the last fifth of the steps alone, as 1 − √x (Hägele et al.
/// 2024, whose name is warm-up, stable, decay); or by the same factor each step, to finalRate behind the last.
enum class Schedule { cosine_closed, cosine, linear, constant, noam, wsd, exponential };
inline constexpr std::array<const char *, 7> scheduleNames = {"cosine-closed", "cosine", "linear",     "constant",
                                                              "noam",          "wsd",    "exponential"};

struct TrainSettings {
  int64_t batch = 0;        // sequences in a micro-batch
  int64_t batchTokens = 0;  // places of one at most, where sequences of like lengths are put together; 0: any
  int64_t accumulate = 1;   // micro-batches in a step
  int64_t parts = 1;        // into which each one that was asked for was cut, for ranks: divide()
  Recompute recompute = {}; // activations that the backward pass makes again
  int64_t lossChunks = 1;   // parts of a micro-batch's places, of which one at a time has logits in memory
  int64_t bucket = 0;       // elements of the gradients that ranks exchange at once, about; 0: Shards::usualBucket
  int64_t steps = 0;
  int64_t warmup = 0;     // steps of linear warm-up
  double rate = 0;        // highest learning rate
  double finalRate = 0.1; // lowest, as a share of the highest
  Schedule schedule = Schedule::cosine_closed;
  DecayOn decayOn = DecayOn::matrices;
  double decay = 0.1, beta1 = 0.9, beta2 = 0.99, epsilon = 1e-8;
  double clip = 1.0;                   // largest gradient norm; 0: any
  double skipLossZ = 0, skipNormZ = 0; // deviations above which a step is left out (kernels/outliers.h); 0: none is
  bool leavesOutliers() const { return skipLossZ > 0 || skipNormZ > 0; }
  double dropout = 0; // the chance of the next two, where these are below 0
  double dropoutEmbedding = -1, dropoutResidual = -1;
  double dropoutActivation = 0, dropoutAttention = 0;
  DropoutKind dropoutKind = DropoutKind::inverted;
  double smoothing = 0; // of labels, in the loss to train by
  AttentionForm attention = AttentionForm::flash;
  Batching batching = Batching::stream;
  DataOrder order = DataOrder::shuffled;
  double pack = 0.75; // a packed sequence takes one document more while less of it is full
  Positions positions = Positions::restart;
  int64_t evaluateEvery = 0;   // steps between validation losses; 0: at the end only
  int64_t evaluateBatches = 0; // micro-batches that each of them takes; 0: all
  bool evaluateAll = false;    // the last one takes all
  int64_t samples = 0;         // texts that each of them shows
  int64_t groupNorms = 0;      // steps between the norms of each part's gradients; 0: never
  uint64_t seed = 1;
  std::optional<Precision> precision = {}; // of products of f32; what suits the machine without
  Type type = f32;                         // of weights, activations and their gradients: the model's
  bool master = true;                      // updates change f32 weights, of which narrow ones are copies
  Rounding rounding = Rounding::nearest;   // of narrow weights that updates change themselves
  double lossScale = 65536;                // that f16 begins with, a power of two
  int64_t scaleWindow = 2000;              // applied updates that double it; 0: it never grows
  Type saveType = f32;                     // of the weights in model.safetensors
};

/// `fp32`, `bf16` or `fp16`: what users call the types of weights and activations.
const char *dtypeOf(Type type);
/// The type that they call so. Throws Error, which names `flag`, for another text.
Type dtypeNamed(const std::string &flag, const std::string &text);

/// Throws Error for a setting out of its range.
void verify(const TrainSettings &settings);

/// Sizes beyond this are slips of the hand: planning such a model takes all memory before anything is said. Products of
/// three of them fit into 64 bits.
inline constexpr int64_t largestSize = int64_t{1} << 20;
/// Throws Error unless `value`, called `name` in the message, is from 1 to `most`.
void expectBetween(const char *name, int64_t value, int64_t most);

/// The settings as a checkpoint holds them, and back. Throws Error for a field that is missing or of another kind.
nlohmann::ordered_json settingsJson(const TrainSettings &settings);
TrainSettings settingsFrom(const JsonObject &json);

/// Learning rate of update `step` (from 0): linear warm-up, then as the schedule says down to finalRate · rate.
double learningRate(const TrainSettings &settings, int64_t step);

} // namespace kiln
