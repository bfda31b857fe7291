// The config of a byte-level model, and presets with training settings.

#pragma once

#include "models/nn/dropout.h"
#include "models/train/settings.h"

#include <nlohmann/json_fwd.hpp>

namespace kiln {

/// Initialisation of the byte and position tables: normal with deviation 1, as in PyTorch, or 0.01.
enum class TableInit { torch, jax };

/// Initialisation of linear layers: weights and biases uniform within ±1/√in; with attention as in
/// nn.TransformerEncoderLayer, by Xavier and without biases; or as in GPT-2.
enum class LinearStart { uniform, pytorch, normal };
inline constexpr std::array<const char *, 3> linearStartNames = {"uniform", "pytorch", "normal"};

struct ByteConfig {
  int64_t layers = 0, heads = 0, width = 0, inner = 0; // inner: width of the MLP
  int64_t context = 0;                                 // bytes of a sequence, all of which are targets
  Type type = f32;
  DropoutOptions dropout = {};
  AttentionForm attention = AttentionForm::flash;
  TableInit tables = TableInit::torch;
  LinearStart linears = LinearStart::uniform;
  DecayOn decayOn = DecayOn::matrices;
  double smoothing = 0; // label smoothing in the training loss

  static constexpr int64_t vocab = 256;
  /// Whether both are one model; dropout, the form of attention and initialisation do not matter.
  bool sameModel(const ByteConfig &other) const;
};

/// Throws Error unless every size is positive and the heads divide the width.
void verify(const ByteConfig &config);
/// `8 layers, 8 heads, width 512, inner 2048, context 256`.
std::string textOf(const ByteConfig &config);
/// Floating-point operations of one training step, as gpt2/config.h counts them.
double flopsOfStep(const ByteConfig &config, int64_t sequences, int64_t length);

/// The model's config.json, and back. Throws Error for a missing or unsuitable field.
nlohmann::ordered_json configJson(const ByteConfig &config);
ByteConfig readByteConfig(const std::string &folder);

/// A preset.
struct NamedByteModel {
  std::string name;
  ByteConfig config;
  TrainSettings settings;
};
/// base; pytorch, which is base with attention initialised and dropped as in nn.TransformerEncoderLayer; small.
const std::vector<NamedByteModel> &byteModels();
/// The preset of that name. Throws Error with all names for another one.
const NamedByteModel &byteModelNamed(const std::string &name);

} // namespace kiln
