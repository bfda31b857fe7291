// Checks, and counts of parameters and FLOPs.

#include "models/gpt2/config.h"

#include <cmath>
#include <fmt/format.h>

namespace kiln {

/// A larger depth is taken as a typing error.
static constexpr int64_t mostLayers = 1000;

double Gpt2Config::scaleOf(int64_t layer) const {
  return (scalesScores ? 1 / std::sqrt(static_cast<double>(headWidth())) : 1) /
         static_cast<double>(scalesByLayer ? layer + 1 : 1);
}

void verify(const Gpt2Config &config) {
  expectBetween("layers", config.layers, mostLayers);
  expectBetween("heads", config.heads, largestSize);
  expectBetween("width", config.width, largestSize);
  expectBetween("context", config.context, largestSize);
  expectBetween("vocab", config.vocab, largestSize);
  if (config.width % config.heads != 0)
    throw Error(fmt::format("expected the number of heads to divide the width, but got {} heads and width {}",
                            config.heads, config.width));
  if (config.inner != 0)
    expectBetween("inner", config.inner, largestSize);
  if (!((config.epsilon > 0 || (config.epsilon == 0 && config.form != Gpt2Form())) && config.epsilon <= 1))
    throw Error(fmt::format("expected LayerNorm's epsilon to be above 0 and at most 1, but got {}", config.epsilon));
}

void verifyBytes(const Gpt2Config &config) {
  if (config.vocab != 256)
    throw Error(fmt::format("expected a vocabulary of 256 for text as bytes, but got {}; --tokens names a tokenizer",
                            config.vocab));
}

std::string textOf(const Gpt2Config &c) {
  std::string text = fmt::format("{} layers, {} heads, width {}, context {}, vocabulary {}", c.layers, c.heads, c.width,
                                 c.context, c.vocab);
  if (c.inner != 0)
    text += fmt::format(", inner {}", c.inner);
  if (!c.tied)
    text += ", a head of its own";
  if (c.form.headBias)
    text += ", a bias of the head";
  if (!c.form.projectionBias)
    text += ", attention without biases";
  if (c.form.scalesTokens)
    text += ", tokens times the root of the width";
  if (c.form.mlpFirst)
    text += ", feed-forward layers first";
  if (c.form.ddof != 0)
    text += fmt::format(", variances over the width less {}", c.form.ddof);
  return text;
}

/// Weights of a block's GEMMs.
static int64_t blockWeights(const Gpt2Config &c) { return 4 * c.width * c.width + 2 * c.width * c.innerWidth(); }

int64_t parameterCount(const Gpt2Config &c) {
  const int64_t biases = (c.form.projectionBias ? 4 : 0) * c.width + c.innerWidth() + c.width, norms = 4 * c.width;
  const int64_t head = (c.tied ? 0 : c.vocab * c.width) + (c.form.headBias ? c.vocab : 0);
  return (c.vocab + c.context) * c.width + c.layers * (blockWeights(c) + biases + norms) + 2 * c.width + head;
}

double flopsOfStep(const Gpt2Config &c, int64_t sequences, int64_t length, double attentionShare) {
  const double tokens = static_cast<double>(sequences) * length;
  const double products = static_cast<double>(c.layers) * blockWeights(c) + static_cast<double>(c.vocab) * c.width;
  const double attention = static_cast<double>(c.layers) * c.width * length; // q·kᵀ and p·v, half of each (causal)
  return 6 * tokens * (products + attention * attentionShare);
}

} // namespace kiln
