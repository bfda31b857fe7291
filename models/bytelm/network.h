// A byte-level model: its config and presets, its layers, and its data.

#pragma once

#include "models/nn/decoder.h"
#include "models/nn/dropout.h"
#include "models/train/model.h"
#include "models/train/settings.h"

#include <nlohmann/json_fwd.hpp>

namespace kiln {

//===-- Config --------------------------------------------------------------------------------------------------===//

/// Initialisation of the byte and position tables: normal with deviation 1, as in PyTorch, or 0.01.
enum class TableInit { torch, jax };
inline constexpr std::array<const char *, 2> tableInitNames = {"torch", "jax"};

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

//===-- Network -------------------------------------------------------------------------------------------------===//
// A byte-level model as layers. Each byte of a sequence is predicted from those before it: inputs are shifted right by
// one, and position 0 gets a vector of zeros. It has no final norm, ReLU in the MLP, and an untied head with a bias.

class ByteNetwork : public DecoderNetwork {
public:
  explicit ByteNetwork(const ByteConfig &config);

  const ByteConfig &config() const { return sizes; }
  double flops(const BatchShape &shape) const override { return flopsOfStep(sizes, shape.sequences, shape.target); }
  std::string text() const override { return textOf(sizes); }
  nlohmann::ordered_json configJson(Type saved) const override;

private:
  ByteConfig sizes;
};

//===-- Data ----------------------------------------------------------------------------------------------------===//
// Shifts sequences right by one, so that each byte is predicted from those before it in its sequence.

/// From sequences of tokens and their successors: the inputs are the tokens before each token, −1 before the first, and
/// the targets are the tokens. If the successor of a token is missing, the targets after it are missing too.
HostBatch shifted(const HostBatch &batch, int64_t context);

/// Data with shifted sequences.
class ShiftedData : public TrainData {
public:
  /// Shifts sequences of `context` tokens; the other data must outlive it.
  ShiftedData(TrainData &data, int64_t context) : data(data), context(context) {}

  DataIdentity identity() const override { return data.identity(); }
  HostBatch training(int64_t first, int64_t count) override { return shifted(data.training(first, count), context); }
  int64_t trainingTargets(int64_t, int64_t count) override { return count * context; }
  int64_t validationSequences() const override { return data.validationSequences(); }
  int64_t validationTargets(const std::vector<int64_t> &sequences) const override;
  HostBatch validation(const std::vector<int64_t> &sequences, int64_t count) const override {
    return shifted(data.validation(sequences, count), context);
  }

private:
  TrainData &data;
  int64_t context;
};

} // namespace kiln
