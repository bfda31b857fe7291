// A translation model: its config and presets, and its layers.

#pragma once

#include "models/nn/block.h"
#include "models/nn/encoder_decoder.h"
#include "models/train/settings.h"

#include <nlohmann/json_fwd.hpp>

namespace kiln {

//===-- Config --------------------------------------------------------------------------------------------------===//

/// Initialisation. Normal with deviation 0.02; or as in PyTorch, linear weights and biases uniform within ±1/√in and
/// tables of deviation 1; or as in PyTorch, except attention by Xavier and tables of deviation 1/√width.
enum class TranslationStart { normal, pytorch, xavier };

/// Variants of translation models.
struct TranslationForm {
  NormPlace norms = NormPlace::pre; // with pre-norm both sides have a final norm too
  NormOptions norm = {};
  bool attentionBias = true; // biases of attention's projections
  bool sharesTable = false;  // source and target share a token table
  bool tied = false;         // the head is the target's token table
  bool headBias = true;
  TranslationStart start = TranslationStart::normal; // irrelevant once a model is trained
  bool operator==(const TranslationForm &) const = default;
};

struct TranslationConfig {
  int64_t encoderLayers = 0, layers = 0, heads = 0, width = 0, inner = 0;
  int64_t context = 0; // positions of a source, and of a target, with special tokens
  TranslationForm form = {};
  int64_t sourceVocab = 0, vocab = 0;
  Type type = f32;
  DropoutOptions dropout = {};
  AttentionForm attention = AttentionForm::flash;
  DecayOn decayOn = DecayOn::matrices;
  double smoothing = 0; // label smoothing in the training loss

  /// Whether both are one model; type and training settings do not matter.
  bool sameModel(const TranslationConfig &other) const;
};

/// Throws Error unless every size is positive, the heads divide the width, and a shared table has one vocabulary.
void verify(const TranslationConfig &config);
/// `3 and 3 layers, 8 heads, width 256, inner 1024, context 128, vocabularies 8000 and 8000`.
std::string textOf(const TranslationConfig &config);
/// Floating-point operations of a training step: 6 per parameter and token in GEMMs (with the head, without tables),
/// and those of attention. The decoder's self-attention counts the causal half.
double flopsOfStep(const TranslationConfig &config, int64_t sequences, int64_t source, int64_t target);

/// The model's config.json, and back. Throws Error for a missing or unsuitable field.
nlohmann::ordered_json configJson(const TranslationConfig &config);
TranslationConfig readTranslationConfig(const std::string &folder);

/// A preset: config, and settings for a number of epochs.
struct NamedTranslation {
  std::string name;
  TranslationConfig config; // without vocabularies
  TrainSettings settings;   // `epochs`, if given, replaces its steps
  int64_t epochs = 0;
};
/// small; aiayn, the base model of Vaswani et al. 2017; annotated, the encoder-decoder of The Annotated Transformer.
const std::vector<NamedTranslation> &translations();
/// The preset of that name. Throws Error with all names for another one.
const NamedTranslation &translationNamed(const std::string &name);

//===-- Network -------------------------------------------------------------------------------------------------===//
// A translation model as layers: an encoder of sources, and a decoder with cross-attention. Sinusoidal positions are
// added to the token rows times √width.

class TranslationNetwork : public EncoderDecoderNetwork {
public:
  /// Throws Error for an invalid config.
  explicit TranslationNetwork(const TranslationConfig &config);

  const TranslationConfig &config() const { return sizes; }
  double flops(const BatchShape &shape) const override {
    return flopsOfStep(sizes, shape.sequences, shape.source, shape.target);
  }
  std::string text() const override { return textOf(sizes); }
  nlohmann::ordered_json configJson(Type saved) const override;

private:
  TranslationConfig sizes;
};

} // namespace kiln
