// Writes and reads training.json, and compares a checkpoint's parts.

#include "models/train/run_state.h"
#include "kernels/adamw.h"
#include "kernels/outliers.h"
#include "models/data/files.h"
#include "models/data/json.h"
#include "models/train/setting_table.h"
#include "models/train/settings.h"
#include "runtime/Files.h"

#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace kiln {

//===-- Identity ------------------------------------------------------------------------------------------------===//

static const std::string identityKey = "kiln.checkpoint", stepKey = "kiln.step", seedKey = "kiln.seed";

/// The hash of parts without an identity.
static std::string computeHash(const IdentifiedParts &parts) {
  std::string all = parts.config + '\0' + parts.training;
  for (const Metadata *metadata : {&parts.weights, &parts.moments})
    for (const auto &[key, value] : *metadata)
      all += '\0' + key + '\0' + value;
  return checksum(all);
}

void identify(IdentifiedParts &parts, int64_t step, uint64_t seed) {
  for (Metadata *metadata : {&parts.weights, &parts.moments}) {
    metadata->emplace(stepKey, std::to_string(step));
    metadata->emplace(seedKey, std::to_string(seed));
  }
  const std::string identity = computeHash(parts);
  parts.training.replace(parts.training.find(noIdentity), noIdentity.size(), identity);
  parts.weights.emplace(identityKey, identity);
  parts.moments.emplace(identityKey, identity);
}

/// The value of `key` in `metadata`, or `none`.
static std::string formatValue(const Metadata &metadata, const std::string &key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? "none" : found->second;
}

void verifyParts(const std::string &checkpoint) {
  const std::string path = checkpoint + "/training.json";
  IdentifiedParts parts;
  parts.config = readFile(checkpoint + "/config.json", mostJsonBytes);
  parts.training = readFile(path, mostJsonBytes);
  const JsonObject training(path, parts.training);
  const bool identified = training.integer("format") > 1;
  const std::string identity = identified ? training.text("checkpoint") : "none";
  for (const auto &[name, metadata] :
       {std::pair("model.safetensors", &parts.weights), std::pair("optimizer.safetensors", &parts.moments)}) {
    *metadata = Safetensors(checkpoint + "/" + name).metadata();
    if (const std::string theirs = formatValue(*metadata, identityKey); theirs != identity)
      throw Error(fmt::format("checkpoint '{}' mixes files of different checkpoints: '{}' is of checkpoint {} (step "
                              "{}, seed {}) and 'training.json' of {} (step {}, seed {})",
                              checkpoint, name, theirs, formatValue(*metadata, stepKey),
                              formatValue(*metadata, seedKey), identity, training.integer("step"),
                              training.object("settings").natural("seed")));
    metadata->erase(identityKey);
  }
  if (!identified)
    return;
  if (const size_t place = parts.training.find(identity); place != std::string::npos)
    parts.training.replace(place, identity.size(), noIdentity);
  if (const std::string got = computeHash(parts); got != identity)
    throw Error(fmt::format("expected the files of checkpoint '{}' to have the hash {}, as when they were written, but "
                            "got {}: one of them was changed",
                            checkpoint, identity, got));
}

//===-- The state of a run --------------------------------------------------------------------------------------===//

static constexpr size_t outlierValues = 3 * outlierWindow;

LossScale firstLossScale(Type type, const TrainSettings &settings) {
  return {type == f16 ? settings.lossScale : minLossScale, 0};
}

/// The settings with micro-batches as requested.
static TrainSettings undivided(TrainSettings s) {
  s.batch *= s.parts;
  s.accumulate /= s.parts;
  s.parts = 1;
  return s;
}

/// The value of a setting in the form of its flag.
static std::string formatValue(const Setting &setting, const TrainSettings &s) {
  const nlohmann::ordered_json value = setting.json(s);
  return value.is_string()         ? value.get<std::string>()
         : value.is_boolean()      ? std::string(value ? "1" : "0")
         : value.is_number_float() ? fmt::format("{}", value.get<double>())
         : value.is_null()         ? "the machine's"
                                   : value.dump();
}

std::vector<std::string> goOnWith(RunState &state, const TrainSettings &settings) {
  const TrainSettings before = undivided(std::exchange(state.settings, settings)), now = undivided(settings);
  if (now.type != before.type || now.lossScale != before.lossScale)
    state.lossScale = firstLossScale(now.type, now);
  std::vector<std::string> lines;
  for (const Setting &setting : settingTable())
    if (const std::string was = formatValue(setting, before), is = formatValue(setting, now); was != is)
      lines.push_back(fmt::format("--{} is {} from here on; it was {}{}", setting.flag, is, was,
                                  setting.decidesOrder ? ", and the sequences that follow are of another order" : ""));
  return lines;
}

nlohmann::ordered_json stateJson(const RunState &state) {
  nlohmann::ordered_json json = {
      {"format", 2},
      {"checkpoint", noIdentity},
      {"step", state.step},
      {"updates", state.updates},
      {"loss_scale", {{"scale", state.lossScale.scale}, {"good_steps", state.lossScale.good}}},
      {"init", state.init.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(state.init)},
      {"settings", settingsJson(state.settings)},
      {"random", {{"generator", "philox4x32-10"}, {"seed", state.settings.seed}, {"sequences", state.sequences}}},
      {"data",
       {{"path", state.data.path},
        {"train_bytes", state.data.bytes},
        {"hash", fmt::format("{:016x}", state.data.hash)}}}};
  if (state.settings.parts > 1)
    json["parts"] = state.settings.parts;
  if (!state.outliers.empty())
    json["outliers"] = state.outliers;
  return json;
}

/// A count in a run's state.
static int64_t readCount(const JsonObject &j, const char *name, const std::string &path) {
  const int64_t count = j.integer(name);
  if (count < 0)
    throw Error(fmt::format("expected field '{}' in '{}' to be at least 0, but got {}", name, path, count));
  return count;
}

/// The hash of the data: 16 hexadecimal digits, which JSON readers keep exactly; a number in older checkpoints.
static uint64_t hashIn(const JsonObject &data) {
  if (data.isNumber("hash"))
    return data.natural("hash");
  const std::string digits = data.text("hash");
  uint64_t hash = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), hash, 16);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.size() != 16)
    data.reject("hash", "16 hexadecimal digits");
  return hash;
}

static LossScale lossScaleIn(const JsonObject &j, const std::string &path) {
  const LossScale held = {j.number("scale"), readCount(j, "good_steps", path)};
  if (!(held.scale >= minLossScale && held.scale <= maxLossScale))
    j.reject("scale", "from 1 to 16777216");
  return held;
}

/// The window for outliers: f32 numbers, which doubles hold exactly.
static std::vector<float> outliersIn(const JsonObject &j) {
  std::vector<float> window;
  for (const double value : j.numbers("outliers"))
    window.push_back(static_cast<float>(value));
  const float next = window.size() == outlierValues ? window[2 * outlierWindow] : -1;
  if (!(next >= 0 && next < 2 * outlierWindow && next == std::floor(next)))
    j.reject("outliers", fmt::format("{} numbers, of which that at {} is a place from 0 to {}", outlierValues,
                                     2 * outlierWindow, 2 * outlierWindow - 1));
  return window;
}

/// The number of sequences in that many uncut micro-batches.
static int64_t sequencesOf(int64_t batches, const TrainSettings &s) {
  int64_t product = 0;
  const bool isTooLarge =
      __builtin_mul_overflow(batches, s.batch, &product) || __builtin_mul_overflow(product, s.parts, &product);
  return isTooLarge ? std::numeric_limits<int64_t>::max() : product;
}

RunState readRunState(const std::string &checkpoint) {
  const std::string path = checkpoint + "/training.json";
  const JsonObject j = readJsonObject(path), data = j.object("data");
  RunState state;
  state.step = readCount(j, "step", path);
  state.sequences = readCount(j.object("random"), "sequences", path);
  state.settings = settingsFrom(j.object("settings"));
  if (j.has("parts")) {
    state.settings.parts = readCount(j, "parts", path);
    if (state.settings.parts < 1 || state.settings.accumulate % state.settings.parts != 0)
      j.reject("parts", fmt::format("a divisor of {} micro-batches", state.settings.accumulate));
  }
  if (const JsonObject saved = j.object("settings"); saved.has("evaluate_batches")) // older checkpoints count batches
    state.settings.evaluateSequences = sequencesOf(saved.integer("evaluate_batches"), state.settings);
  // In older checkpoints every step was applied.
  state.updates = j.has("updates") ? readCount(j, "updates", path) : state.step;
  if (j.has("loss_scale"))
    state.lossScale = lossScaleIn(j.object("loss_scale"), path);
  if (j.has("outliers"))
    state.outliers = outliersIn(j);
  state.data = {data.text("path"), data.integer("train_bytes"), hashIn(data)};
  if (j.has("init"))
    state.init = j.text("init");
  verifyParts(checkpoint);
  return state;
}

} // namespace kiln
