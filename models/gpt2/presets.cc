// The presets.

#include "models/gpt2/config.h"
#include "models/train/flags.h"

#include <algorithm>
#include <cmath>

namespace kiln {

namespace {
struct Entry {
  const char *name;
  Gpt2Config config;
  bool isSize = true; // a size only, with settings chosen by size
};
} // namespace

/// GPT-2 with the norms, embeddings and dropout of The Annotated Transformer.
static Gpt2Config annotated(int64_t layers, int64_t heads, int64_t width, int64_t context, int64_t vocab) {
  Gpt2Config config = {layers, heads, width, context, vocab};
  config.epsilon = 0;
  config.form = {.ddof = 1, .scalesTokens = true, .projectionBias = false, .headBias = true};
  return config;
}

/// GPT-2 with the MLP before attention.
static Gpt2Config mlpFirst(int64_t layers, int64_t heads, int64_t width, int64_t context, int64_t vocab) {
  Gpt2Config config = {layers, heads, width, context, vocab};
  config.tied = false;
  config.epsilon = 1e-6;
  config.form = {.headBias = true, .mlpFirst = true, .lecunInit = true};
  return config;
}

static const std::vector<Entry> &entries() {
  static const std::vector<Entry> all = {
      {"nano", {4, 4, 128, 64}},
      {"d2", {2, 2, 128, 1024}},
      {"d4", {4, 4, 256, 1024}},
      {"d6", {6, 6, 384, 1024}},
      {"d8", {8, 8, 512, 1024}},
      {"d12", {12, 12, 768, 1024}},
      {"d24", {24, 16, 1024, 1024}},
      {"d36", {36, 20, 1280, 1024}},
      {"d48", {48, 25, 1600, 1024}},
      {"llmc-124m", {12, 12, 768, 1024, 50257}, false},
      {"annotated", annotated(12, 12, 768, 512, 35374), false},
      {"annotated-small", annotated(2, 4, 128, 64, 256), false},
      {"mlp-first", mlpFirst(12, 8, 1024, 512, 2048), false},
      {"mlp-first-small", mlpFirst(2, 2, 128, 64, 256), false},
  };
  return all;
}

/// nano trains in two minutes on two cores. The others have OpenAI's and nanoGPT's learning rates by width.
static TrainSettings settingsOfSize(const std::string &name, const Gpt2Config &config) {
  TrainSettings s;
  s.evaluateEvery = 500;
  if (name == "nano") {
    s.batch = 16;
    s.steps = 2000;
    s.warmup = 100;
    s.rate = 4e-3;
  } else {
    s.batch = 4;
    s.steps = 10000;
    s.warmup = 500;
    s.rate = config.width < 768 ? 1e-3 : config.width < 1024 ? 6e-4 : config.width < 1280 ? 3e-4 : 2e-4;
    s.beta2 = 0.95;
  }
  return s;
}

/// One epoch of FineWeb's ten billion tokens, half a million a step.
static TrainSettings settingsOfLlmc() {
  TrainSettings s;
  s.batch = 64;
  s.accumulate = 8;
  s.steps = 18865;
  s.warmup = 700;
  s.rate = 6e-4;
  s.finalRate = 0;
  s.schedule = Schedule::cosine;
  s.decay = 0.1;
  s.beta2 = 0.95;
  s.evaluateEvery = 250;
  s.evaluateSequences = 1280;
  return s;
}

static TrainSettings settingsOfAnnotated(bool small) {
  TrainSettings s;
  s.batch = small ? 4 : 8;
  s.accumulate = small ? 2 : 32;
  s.steps = small ? 2000 : 10000;
  s.warmup = s.steps / 5;
  s.rate = small ? 1e-3 : 2.5e-4;
  s.finalRate = 0;
  s.schedule = Schedule::cosine;
  s.decay = 0.01;
  s.decayOn = DecayOn::nonzero;
  s.beta2 = 0.98;
  s.clip = 0;
  s.dropout = s.dropoutAttention = 0.1;
  s.dropoutKind = DropoutKind::plain;
  s.evaluateEvery = 500;
  s.gradientNorms = 10;
  return s;
}

static TrainSettings settingsOfMlpFirst() {
  TrainSettings s;
  s.batch = 16;
  s.accumulate = 4;
  s.steps = 1000;
  s.warmup = 10;
  s.rate = 4e-4;
  s.schedule = Schedule::exponential;
  s.finalRate = std::pow(0.99, static_cast<double>(s.steps - s.warmup)); // 0.99 a step
  s.decay = 1e-4;
  s.decayOn = DecayOn::all;
  s.beta2 = 0.999;
  s.clip = 0;
  s.dropout = 0.1;
  s.evaluateEvery = 500;
  return s;
}

static TrainSettings settingsFor(const Entry &entry) {
  const std::string name = entry.name;
  if (name.starts_with("mlp-first"))
    return settingsOfMlpFirst();
  if (entry.isSize)
    return settingsOfSize(name, entry.config);
  return name == "llmc-124m" ? settingsOfLlmc() : settingsOfAnnotated(name == "annotated-small");
}

std::vector<std::string> gpt2Names() { return presetNames(entries()); }

NamedGpt2 gpt2Named(const std::string &name) {
  const Entry &entry = presetNamed(entries(), name);
  return {entry.config, settingsFor(entry)};
}

std::string nearestGpt2(const Gpt2Config &config) {
  const auto distance = [&](const Entry &entry) {
    return entry.isSize ? std::abs(std::log(static_cast<double>(parameterCount(entry.config)) / parameterCount(config)))
                        : INFINITY;
  };
  return std::min_element(entries().begin(), entries().end(),
                          [&](const Entry &a, const Entry &b) { return distance(a) < distance(b); })
      ->name;
}

} // namespace kiln
