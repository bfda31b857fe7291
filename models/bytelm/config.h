// The size of a model of bytes, and the names of the usual ones with settings that train them.

#pragma once

#include "models/nn/dropout.h"
#include "models/train/settings.h"

#include <nlohmann/json_fwd.hpp>

namespace kiln {

/// How the tables of bytes and positions begin: normal numbers of deviation 1, as PyTorch's, or 0.01.
enum class TableInit { torch, jax };

/// How linear layers begin: weights and biases uniform within ±1/√in; the same but for attention as
/// nn.TransformerEncoderLayer has it, by Xavier and without biases; or as GPT-2's.
enum class LinearStart { uniform, pytorch, normal };
inline constexpr std::array<const char *, 3> linearStartNames = {"uniform", "pytorch", "normal"};

struct ByteConfig {
  int64_t layers = 0, heads = 0, width = 0, inner = 0; // inner: of the feed-forward layers
  int64_t context = 0;                                 // bytes of a sequence, all of which are predicted
  Type type = f32;
  DropoutOptions dropout = {};
  AttentionForm attention = AttentionForm::flash;
  TableInit tables = TableInit::torch;
  LinearStart linears = LinearStart::uniform;
  DecayOn decayOn = DecayOn::matrices;
  double smoothing = 0; // of labels, in the loss to train by

  static constexpr int64_t vocab = 256;
  /// Whether the other computes the same; neither dropout, nor the form of attention, nor how it begins decides that.
  bool sameModel(const ByteConfig &other) const;
};

/// Throws Error unless every size is positive and the heads divide the width.
void verify(const ByteConfig &config);
/// `8 layers, 8 heads, width 512, inner 2048, context 256`.
std::string textOf(const ByteConfig &config);
/// Floating-point operations of one training step, as gpt2/config.h counts them.
double flopsOfStep(const ByteConfig &config, int64_t sequences, int64_t length);

/// What a checkpoint's config.json says of the model, and back. Throws Error for a field that is missing or another.
nlohmann::ordered_json configJson(const ByteConfig &config);
ByteConfig readByteConfig(const std::string &folder);

/// A size with a name, and settings that train it.
struct NamedByteModel {
  std::string name;
  ByteConfig config;
  TrainSettings settings;
};
/// seed000; pytorch, which is that with attention as nn.TransformerEncoderLayer begins it and drops its weights; small.
const std::vector<NamedByteModel> &byteModels();
/// Throws Error with the names there are.
const NamedByteModel &byteModelNamed(const std::string &name);

} // namespace kiln
