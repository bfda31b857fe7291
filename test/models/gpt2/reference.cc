// GPT-2's options and names for the decoder on a tape; AdamW by its formulas.

#include "test/models/gpt2/reference.h"
#include "test/models/reference/decoder.h"

#include <utility>

using namespace kiln;
using namespace kiln::test;

namespace reference {

static DecoderOptions optionsOf(const Gpt2Config &c) {
  DecoderOptions o = {.layers = c.layers, .width = c.width, .context = c.context, .vocab = c.vocab};
  o.block.attention.heads = c.heads;
  o.block.norm.epsilon = c.epsilon;
  o.attentionScale = [c](int64_t layer) {
    const double root = c.scalesScores ? std::sqrt(static_cast<double>(c.width / c.heads)) : 1;
    return 1 / (root * static_cast<double>(c.scalesByLayer ? layer + 1 : 1));
  };
  return o;
}

/// The decoder's name of a parameter.
static std::string plainName(std::string name) {
  static const std::pair<std::string, std::string> names[] = {
      {"wte.weight", "tokens"}, {"wpe.weight", "places"}, {"ln_f", "last"},   {"ln_1", "norm1"},      {"ln_2", "norm2"},
      {"attn.c_attn", "qkv"},   {"attn.c_proj", "mixed"}, {"mlp.c_fc", "up"}, {"mlp.c_proj", "down"}, {"h.", ""}};
  for (const auto &[huggingFace, plain] : names)
    if (const size_t at = name.find(huggingFace); at != std::string::npos)
      name.replace(at, huggingFace.size(), plain);
  return name;
}

/// The parameters on a tape, by the decoder's names.
static std::map<std::string, Value> valuesOf(Tape &tape, const Gpt2Config &c, const Tensors &parameters) {
  std::map<std::string, Value> values;
  for (const auto &[name, numbers] : parameters) {
    const auto count = static_cast<int64_t>(numbers.size());
    const bool isVector = name.ends_with("bias") || name.find("ln_") != std::string::npos;
    const bool hasWidthRows = name.find("c_attn") != std::string::npos || name.find("c_fc") != std::string::npos;
    const int64_t columns = isVector ? count : hasWidthRows ? count / c.width : c.width;
    values.emplace(plainName(name), tape.value(count / columns, columns, numbers));
  }
  return values;
}

double gradient(const Gpt2Config &c, const Tensors &parameters, const std::vector<int> &tokens,
                const std::vector<int> &targets, int64_t batch, int64_t time, Tensors &gradients) {
  Tape tape;
  std::map<std::string, Value> values = valuesOf(tape, c, parameters);
  const Value loss = decoderLoss(tape, optionsOf(c), values, {batch, time, tokens, targets, {}});
  tape.play(loss);
  for (const auto &[name, numbers] : parameters)
    gradients[name] = values.at(plainName(name)).gradient();
  return loss.numbers()[0];
}

double loss(const Gpt2Config &c, const Tensors &parameters, const std::vector<int> &tokens,
            const std::vector<int> &targets, int64_t batch, int64_t time) {
  Tape tape;
  std::map<std::string, Value> values = valuesOf(tape, c, parameters);
  return decoderLoss(tape, optionsOf(c), values, {batch, time, tokens, targets, {}}).numbers()[0];
}

Tensor logits(const Gpt2Config &c, const Tensors &parameters, const std::vector<int> &tokens, int64_t batch,
              int64_t time) {
  Tape tape;
  std::map<std::string, Value> values = valuesOf(tape, c, parameters);
  return decoderLogits(tape, optionsOf(c), values, {batch, time, tokens, {}, {}}).numbers();
}

double AdamW::update(Tensors &parameters, const Tensors &gradients, double rate) {
  double squares = 0;
  for (const auto &[key, g] : gradients)
    for (double value : g)
      squares += value * value;
  const double norm = std::sqrt(squares), scale = norm > clip ? clip / norm : 1;
  ++steps;
  for (auto &[key, p] : parameters) {
    const bool vector = key.find("bias") != std::string::npos || key.find("ln_") != std::string::npos;
    Tensor &m = first[key], &v = second[key];
    m.resize(p.size());
    v.resize(p.size());
    for (size_t i = 0; i < p.size(); ++i) {
      const double g = gradients.at(key)[i] * scale;
      m[i] = beta1 * m[i] + (1 - beta1) * g;
      v[i] = beta2 * v[i] + (1 - beta2) * g * g;
      const double mhat = m[i] / (1 - std::pow(beta1, steps)), vhat = v[i] / (1 - std::pow(beta2, steps));
      p[i] -= rate * (mhat / (std::sqrt(vhat) + epsilon) + (vector ? 0 : decay * p[i]));
    }
  }
  return norm;
}

} // namespace reference
