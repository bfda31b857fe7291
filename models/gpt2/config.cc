// Named sizes, their checks, counts and the learning-rate schedule.

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

/// Sizes beyond these are slips of the hand: planning such a model takes all memory before anything is said. Their
/// products fit into 64 bits.
static constexpr int64_t mostLayers = 1000, largestSize = int64_t{1} << 20;

static void expectBetween(const char *name, int64_t value, int64_t most) {
  if (value < 1 || value > most)
    throw Error(fmt::format("expected '{}' to be at {} {}, but got {}", name, value < 1 ? "least" : "most",
                            value < 1 ? 1 : most, value));
}

double Gpt2Config::scaleOf(int64_t layer) const {
  return (scalesScores ? 1 / std::sqrt(static_cast<double>(headWidth())) : 1) /
         static_cast<double>(scalesByLayer ? layer + 1 : 1);
}

void verifyBatch(int64_t sequences) { expectBetween("batch", sequences, largestSize); }

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
        fmt::format("expected a vocabulary of 256 for text, one token a byte, but got {}; there is no tokenizer "
                    "yet",
                    config.vocab));
}

void verify(const TrainSettings &s) {
  auto expect = [](bool right, const char *name, const char *range, double value) {
    if (!right)
      throw Error(fmt::format("expected '{}' to be {}, but got {}", name, range, value));
  };
  verifyBatch(s.batch);
  expectBetween("accumulate", s.accumulate, largestSize); // the sequences of a step fit into 64 bits
  expect(s.steps >= 1, "steps", "at least 1", static_cast<double>(s.steps));
  expect(s.warmup >= 0 && s.warmup <= s.steps, "warmup", "between 0 and the steps", static_cast<double>(s.warmup));
  expect(s.rate > 0, "lr", "above 0", s.rate);
  expect(s.finalRate >= 0 && s.finalRate <= 1, "final-lr", "between 0 and 1", s.finalRate);
  expect(s.decay >= 0, "decay", "at least 0", s.decay);
  expect(s.beta1 >= 0 && s.beta1 < 1, "beta1", "at least 0 and below 1", s.beta1);
  expect(s.beta2 >= 0 && s.beta2 < 1, "beta2", "at least 0 and below 1", s.beta2);
  expect(s.clip > 0, "clip", "above 0", s.clip);
  expect(s.evaluateEvery >= 0, "evaluate-every", "at least 0", static_cast<double>(s.evaluateEvery));
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

double flopsOfStep(const Gpt2Config &c, int64_t sequences) {
  const double tokens = static_cast<double>(sequences) * c.context;
  const double products = 12.0 * c.layers * c.width * c.width + static_cast<double>(c.vocab) * c.width;
  const double attention = static_cast<double>(c.layers) * c.width * c.context; // q·kᵀ and p·v, half of each
  return 6 * tokens * (products + attention);
}

double learningRate(const TrainSettings &s, int64_t step) {
  if (step < s.warmup)
    return s.rate * static_cast<double>(step + 1) / static_cast<double>(s.warmup);
  const int64_t span = s.steps - s.warmup;
  const double done =
      span > 1 ? std::min(1.0, static_cast<double>(step - s.warmup) / static_cast<double>(span - 1)) : 1.0;
  return s.rate * (s.finalRate + (1 - s.finalRate) * 0.5 * (1 + std::cos(M_PI * done)));
}

} // namespace kiln
