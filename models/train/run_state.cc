// Writes and reads training.json.

#include "models/train/run_state.h"
#include "kernels/adamw.h"
#include "kernels/outliers.h"
#include "models/data/json.h"
#include "models/train/identity.h"
#include "models/train/setting_table.h"

#include <charconv>
#include <cmath>
#include <fmt/format.h>

namespace kiln {

static constexpr size_t outlierValues = 3 * outlierWindow;

uint64_t hashOf(const std::vector<uint8_t> &bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (uint8_t byte : bytes)
    hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

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
static std::string valueOf(const Setting &setting, const TrainSettings &s) {
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
    if (const std::string was = valueOf(setting, before), is = valueOf(setting, now); was != is)
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
static int64_t countOf(const JsonObject &j, const char *name, const std::string &path) {
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
  const LossScale held = {j.number("scale"), countOf(j, "good_steps", path)};
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

RunState readRunState(const std::string &checkpoint) {
  const std::string path = checkpoint + "/training.json";
  const JsonObject j = readJsonObject(path), data = j.object("data");
  RunState state;
  state.step = countOf(j, "step", path);
  state.sequences = countOf(j.object("random"), "sequences", path);
  state.settings = settingsFrom(j.object("settings"));
  if (j.has("parts")) {
    state.settings.parts = countOf(j, "parts", path);
    if (state.settings.parts < 1 || state.settings.accumulate % state.settings.parts != 0)
      j.reject("parts", fmt::format("a divisor of {} micro-batches", state.settings.accumulate));
  }
  // In older checkpoints every step was applied.
  state.updates = j.has("updates") ? countOf(j, "updates", path) : state.step;
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
