// Named sizes, their checks and counts.

#include "models/gpt2/config.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace kiln {

namespace {
struct Entry {
  const char *name;
  Gpt2Config config;
};
} // namespace

static const std::vector<Entry> &entries() {
  static const std::vector<Entry> all = {
      {"nano", {4, 4, 128, 64}},     {"d2", {2, 2, 128, 1024}},     {"d4", {4, 4, 256, 1024}},
      {"d6", {6, 6, 384, 1024}},     {"d8", {8, 8, 512, 1024}},     {"d12", {12, 12, 768, 1024}},
      {"d24", {24, 16, 1024, 1024}}, {"d36", {36, 20, 1280, 1024}}, {"d48", {48, 25, 1600, 1024}},
  };
  return all;
}

/// nano is made for two minutes on two cores; the others follow OpenAI's and nanoGPT's learning rates by width.
static TrainSettings settingsFor(const std::string &name, const Gpt2Config &config) {
  TrainSettings s;
  if (name == "nano") {
    s.batch = 16;
    s.steps = 2000;
    s.warmup = 100;
    s.rate = 4e-3;
    s.evaluateEvery = 500;
  } else {
    s.batch = 4;
    s.steps = 10000;
    s.warmup = 500;
    s.rate = config.width < 768 ? 1e-3 : config.width < 1024 ? 6e-4 : config.width < 1280 ? 3e-4 : 2e-4;
    s.beta2 = 0.95;
    s.evaluateEvery = 500;
  }
  return s;
}

std::vector<std::string> gpt2Names() {
  std::vector<std::string> names;
  for (const Entry &entry : entries())
    names.emplace_back(entry.name);
  return names;
}

NamedGpt2 gpt2Named(const std::string &name) {
  std::string names;
  for (const Entry &entry : entries()) {
    if (name == entry.name)
      return {entry.config, settingsFor(name, entry.config)};
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw Error(fmt::format("expected a model out of {}, but got '{}'", names, name));
}

/// No network is deeper, unless by a slip of the hand.
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
    throw Error(fmt::format("expected the heads to divide the width, but got {} heads and width {}", config.heads,
                            config.width));
  if (!(config.epsilon > 0 && config.epsilon <= 1))
    throw Error(fmt::format("expected LayerNorm's epsilon to be above 0 and at most 1, but got {}", config.epsilon));
}

void verifyBytes(const Gpt2Config &config) {
  if (config.vocab != 256)
    throw Error(
        fmt::format("expected a vocabulary of 256 for text, one token a byte, but got {}; --tokens names a tokenizer",
                    config.vocab));
}

std::string textOf(const Gpt2Config &c) {
  return fmt::format("{} layers, {} heads, width {}, context {}, vocabulary {}", c.layers, c.heads, c.width, c.context,
                     c.vocab);
}

std::string nearestGpt2(const Gpt2Config &config) {
  const auto distance = [&](const Entry &entry) {
    return std::abs(std::log(static_cast<double>(parameterCount(entry.config)) / parameterCount(config)));
  };
  return std::min_element(entries().begin(), entries().end(),
                          [&](const Entry &a, const Entry &b) { return distance(a) < distance(b); })
      ->name;
}

int64_t parameterCount(const Gpt2Config &c) {
  const int64_t block = 12 * c.width * c.width + 13 * c.width;
  return (c.vocab + c.context) * c.width + c.layers * block + 2 * c.width;
}

double flopsOfStep(const Gpt2Config &c, int64_t sequences, int64_t length) {
  const double tokens = static_cast<double>(sequences) * length;
  const double products = 12.0 * c.layers * c.width * c.width + static_cast<double>(c.vocab) * c.width;
  const double attention = static_cast<double>(c.layers) * c.width * length; // q·kᵀ and p·v, half of each
  return 6 * tokens * (products + attention);
}

} // namespace kiln
