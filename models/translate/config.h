// The size and the form of a translation model.

#pragma once

#include "models/nn/block.h"
#include "models/train/settings.h"

#include <nlohmann/json_fwd.hpp>

namespace kiln {

/// How its weights begin: normal of deviation 0.02; as PyTorch's linear layers, weights and biases uniform within
/// ±1/√in, and tables of deviation 1; or the same with attention by Xavier, and tables of deviation 1/√width.
enum class TranslationStart { normal, pytorch, xavier };
inline constexpr std::array<const char *, 3> translationStartNames = {"normal", "pytorch", "xavier"};

/// What models that translate have one way or another.
struct TranslationForm {
  NormPlace norms = NormPlace::pre; // with pre there is a norm behind the last block of either side, too
  NormOptions norm = {};
  bool attentionBias = true; // of attention's projections
  bool sharesTable = false;  // of tokens, by source and sequence
  bool tied = false;         // the head is the sequence's table of tokens
  bool headBias = true;
  TranslationStart start = TranslationStart::normal; // of no consequence once a model is trained
  bool operator==(const TranslationForm &) const = default;
};

struct TranslationConfig {
  int64_t encoderLayers = 0, layers = 0, heads = 0, width = 0, inner = 0;
  int64_t context = 0; // places of a source, and of a sequence, with their marks
  TranslationForm form = {};
  int64_t sourceVocab = 0, vocab = 0;
  Type type = f32;
  DropoutOptions dropout = {};
  AttentionForm attention = AttentionForm::flash;
  DecayOn decayOn = DecayOn::matrices;
  double smoothing = 0; // of labels, in the loss to train by

  /// Whether the other computes the same; neither its type nor what training decides says that.
  bool sameModel(const TranslationConfig &other) const;
};

/// Throws Error unless every size is positive, the heads divide the width, and a shared table is one of one vocabulary.
void verify(const TranslationConfig &config);
/// `3 and 3 layers, 8 heads, width 256, inner 1024, context 128, vocabularies 8000 and 8000`.
std::string textOf(const TranslationConfig &config);
/// Floating-point operations of a training step: 6 a parameter and token in matrix products (the head included, the
/// tables not), and those of attention, of which the decoder's own is the causal half.
double flopsOfStep(const TranslationConfig &config, int64_t sequences, int64_t source, int64_t target);

/// What a checkpoint's config.json says of the model, and back. Throws Error for a field that is missing or another.
nlohmann::ordered_json configJson(const TranslationConfig &config);
TranslationConfig readTranslationConfig(const std::string &folder);

/// A size and form with a name, and settings that train it for so many passes over the data.
struct NamedTranslation {
  std::string name;
  TranslationConfig config; // without vocabularies
  TrainSettings settings;   // whose steps are those of `epochs`, where that is given
  int64_t epochs = 0;
};
/// small; aiayn, the base model of Vaswani et al. 2017; seed002.
const std::vector<NamedTranslation> &translations();
/// Throws Error with the names there are.
const NamedTranslation &translationNamed(const std::string &name);

} // namespace kiln
