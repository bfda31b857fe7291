// A byte-level model's presets, checks, config.json and decoder options; and inputs shifted by one position.

#include "models/bytelm/network.h"
#include "models/data/batches.h"
#include "models/data/json.h"
#include "models/train/flags.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln {

//===-- Config --------------------------------------------------------------------------------------------------===//

bool ByteConfig::sameModel(const ByteConfig &o) const { return kiln::configJson(*this) == kiln::configJson(o); }

void verify(const ByteConfig &c) { verifySizes(c, c.inner); }

std::string textOf(const ByteConfig &c) {
  return fmt::format("{} layers, {} heads, width {}, inner {}, context {}", c.layers, c.heads, c.width, c.inner,
                     c.context);
}

double flopsOfStep(const ByteConfig &c, int64_t sequences, int64_t length) {
  const auto width = static_cast<double>(c.width), rows = static_cast<double>(sequences * length);
  const double weights =
      static_cast<double>(c.layers) * (4 * width * width + 2 * width * static_cast<double>(c.inner)) +
      width * ByteConfig::vocab;
  return 6 * rows * (weights + static_cast<double>(c.layers) * width * static_cast<double>(length));
}

nlohmann::ordered_json configJson(const ByteConfig &c) {
  return {{"model_type", "bytelm"}, {"layers", c.layers}, {"heads", c.heads},
          {"width", c.width},       {"inner", c.inner},   {"context", c.context}};
}

ByteConfig readByteConfig(const std::string &folder) {
  const JsonObject json = readJsonObject(folder + "/config.json");
  if (const std::string type = json.text("model_type"); type != "bytelm")
    throw Error(fmt::format("expected a model of bytes in '{}', but its config.json says '{}'", folder, type));
  ByteConfig c;
  c.layers = json.integer("layers");
  c.heads = json.integer("heads");
  c.width = json.integer("width");
  c.inner = json.integer("inner");
  c.context = json.integer("context");
  verify(c);
  return c;
}

static TrainSettings settingsFor(bool small, bool pytorch = false) {
  TrainSettings s;
  s.batch = 20;
  s.accumulate = small ? 1 : 5;
  s.steps = small ? 2000 : 5000;
  s.rate = 1e-3;
  s.finalRate = 1; // a constant rate
  s.decay = 0;
  s.beta1 = 0.9;
  s.beta2 = 0.999;
  s.epsilon = 1e-8;
  s.clip = 0;
  s.dropout = 0.1;
  s.dropoutActivation = 0.1;
  s.dropoutAttention = pytorch ? 0.1 : 0;
  s.evaluateSequences = 1000;
  return s;
}

const std::vector<NamedByteModel> &byteModels() {
  static const std::vector<NamedByteModel> all = {
      {"base", {8, 8, 512, 2048, 256}, settingsFor(false)},
      {"pytorch",
       {.layers = 8, .heads = 8, .width = 512, .inner = 2048, .context = 256, .linears = LinearStart::pytorch},
       settingsFor(false, true)},
      {"small", {4, 4, 128, 512, 128}, settingsFor(true)}};
  return all;
}

const NamedByteModel &byteModelNamed(const std::string &name) { return presetNamed(byteModels(), name); }

//===-- Network -------------------------------------------------------------------------------------------------===//

static LayerNames layerNames(const std::string &layer) { return {layer + ".weight", layer + ".bias"}; }
static BlockNames blockNames(int64_t number) {
  const auto layer = [&](const char *name) { return layerNames(fmt::format("blocks.{}.{}", number, name)); };
  return {layer("attention_norm"),
          {layer("attention_input"), layer("attention_output")},
          layer("mlp_norm"),
          {layer("mlp_input"), layer("mlp_output")}};
}
static DecoderNames names() { return {{"bytes.weight", "positions.weight"}, blockNames, {}, layerNames("head")}; }

static DecoderOptions networkOptions(const ByteConfig &c) {
  DecoderOptions o = decoderOptions(c, c.layers, ByteConfig::vocab);
  o.block.mlp = {c.inner, Activation::relu};
  const Init table = {Init::Kind::normal, c.tables == TableInit::torch ? 1 : 0.01};
  o.embedding.tokenInit = o.embedding.positionInit = table;
  o.lastNorm = false;
  o.head = {.tied = false, .bias = true};
  if (c.linears == LinearStart::normal) {
    o.inits = {0.02, 0.02 / std::sqrt(2.0 * static_cast<double>(c.layers))};
  } else {
    o.inits.byWidth = true;
    o.inits.xavierAttention = c.linears == LinearStart::pytorch;
  }
  o.headInit = o.inits.inner(c.width);
  return o;
}

/// The config, after its checks.
static const ByteConfig &verified(const ByteConfig &config) {
  verify(config);
  return config;
}

ByteNetwork::ByteNetwork(const ByteConfig &config)
    : DecoderNetwork(names(), networkOptions(verified(config)), config.type, config.decayOn), sizes(config) {}

nlohmann::ordered_json ByteNetwork::configJson(Type) const { return kiln::configJson(sizes); }

//===-- Data ----------------------------------------------------------------------------------------------------===//

HostBatch shifted(const HostBatch &batch, int64_t context) {
  const std::vector<int32_t> tokens = batch.at("tokens").numbers<int32_t>(),
                             next = batch.at("targets").numbers<int32_t>();
  std::vector<int32_t> before(tokens.size(), -1), targets(tokens.size(), ignoredTarget);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool isFirst = static_cast<int64_t>(i) % context == 0;
    if (isFirst && next[i] == ignoredTarget)
      continue; // padding after the last sequence
    targets[i] = isFirst ? tokens[i] : next[i - 1];
    if (!isFirst && targets[i] != ignoredTarget)
      before[i] = tokens[i - 1];
  }
  return languageBatch(before, targets);
}

int64_t ShiftedData::validationTargets(const std::vector<int64_t> &sequences) const {
  const std::vector<int32_t> targets = validation(sequences, std::ssize(sequences)).at("targets").numbers<int32_t>();
  return std::ssize(targets) - std::count(targets.begin(), targets.end(), ignoredTarget);
}

} // namespace kiln
