// Presets, checks, and config.json.

#include "models/bytelm/config.h"
#include "models/data/json.h"
#include "models/train/flags.h"

#include <fmt/format.h>

namespace kiln {

bool ByteConfig::sameModel(const ByteConfig &o) const {
  return layers == o.layers && heads == o.heads && width == o.width && inner == o.inner && context == o.context;
}

void verify(const ByteConfig &c) {
  expectBetween("layers", c.layers, largestSize);
  expectBetween("heads", c.heads, largestSize);
  expectBetween("width", c.width, largestSize);
  expectBetween("inner", c.inner, largestSize);
  expectBetween("context", c.context, largestSize);
  if (c.width % c.heads != 0)
    throw Error(fmt::format("expected the number of heads to divide the width, but got {} heads and width {}", c.heads,
                            c.width));
}

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
  s.evaluateBatches = 50;
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

const NamedByteModel &byteModelNamed(const std::string &name) {
  std::vector<std::string> names;
  for (const NamedByteModel &model : byteModels()) {
    if (model.name == name)
      return model;
    names.push_back(model.name);
  }
  throw unknownModel(name, names);
}

} // namespace kiln
