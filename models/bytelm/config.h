// The size of a model of bytes, and the names of the usual ones with settings that train them.

#pragma once

#include "models/nn/dropout.h"
#include "models/train/settings.h"

#include <nlohmann/json_fwd.hpp>

namespace kiln {

/// How the tables of bytes and positions begin: normal numbers of deviation 1, as PyTorch's, or 0.01.
enum class TableInit { torch, jax };

struct ByteConfig {
  int64_t layers = 0, heads = 0, width = 0, inner = 0; // inner: of the feed-forward layers
  int64_t context = 0;                                 // bytes of a sequence, all of which are predicted
  Type type = f32;
  DropoutOptions dropout = {};
  TableInit tables = TableInit::torch;
  DecayOn decayOn = DecayOn::matrices;

  static constexpr int64_t vocab = 256;
  /// Whether the other computes the same; neither dropout nor how tables begin decides that.
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
/// seed000 and small.
const std::vector<NamedByteModel> &byteModels();
/// Throws Error with the names there are.
const NamedByteModel &byteModelNamed(const std::string &name);

} // namespace kiln
