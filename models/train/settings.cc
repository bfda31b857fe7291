// Functions that visit the table of settings, and the learning rate schedule.

#include "models/train/settings.h"
#include "dialect/dsl/Nearest.h"
#include "models/data/json.h"
#include "models/train/setting_table.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace kiln {

static const std::pair<const char *, Type> dtypes[] = {{"fp32", f32}, {"bf16", bf16}, {"fp16", f16}};

const char *dtypeName(Type type) {
  for (const auto &[name, named] : dtypes)
    if (named == type)
      return name;
  throw Error(fmt::format("expected a type of weights, but got {}", nameOf(type)), Fault::internal);
}

Type dtypeNamed(const std::string &flag, const std::string &text) {
  for (const auto &[name, type] : dtypes)
    if (text == name)
      return type;
  throw Error(fmt::format("expected '{}' to be fp32, bf16 or fp16, but got '{}'{}", flag, text,
                          didYouMean(text, {"fp32", "bf16", "fp16"})));
}

void expectBetween(const char *name, int64_t value, int64_t most) {
  if (value < 1 || value > most)
    throw Error(fmt::format("expected '{}' to be at {} {}, but got {}", name, value < 1 ? "least" : "most",
                            value < 1 ? 1 : most, value));
}

void verify(const TrainSettings &s) {
  for (const Setting &setting : settingTable())
    setting.verify(s);
}

nlohmann::ordered_json settingsJson(const TrainSettings &s) {
  nlohmann::ordered_json json;
  for (const Setting &setting : settingTable())
    json[setting.field] = setting.json(s);
  return json;
}

TrainSettings settingsFrom(const JsonObject &saved) {
  JsonObject json = saved;
  json.rename("group_norms", "gradient_norms"); // former names, in the files of older runs
  json.renameText("decay_on", "seed001", "nonzero");
  TrainSettings s;
  for (const Setting &setting : settingTable())
    setting.read(s, json);
  return s;
}

double learningRate(const TrainSettings &s, int64_t step) {
  if (step < s.warmup)
    return s.rate * static_cast<double>(step + 1) / static_cast<double>(s.warmup);
  if (s.schedule == Schedule::constant)
    return s.rate;
  if (s.schedule == Schedule::noam) {
    const double peak = static_cast<double>(std::max<int64_t>(s.warmup, 1));
    return s.rate * std::sqrt(peak / static_cast<double>(step + 1));
  }
  const int64_t begin = s.schedule == Schedule::wsd ? std::max(s.warmup, s.steps * 4 / 5) : s.warmup;
  if (step < begin)
    return s.rate;
  const int64_t span = s.steps - begin - (s.schedule == Schedule::cosine_closed);
  const double done = span > 0 ? std::min(1.0, static_cast<double>(step - begin) / static_cast<double>(span)) : 1.0;
  if (s.schedule == Schedule::exponential)
    return s.rate * std::pow(s.finalRate, done);
  const double left = s.schedule == Schedule::linear ? 1 - done
                      : s.schedule == Schedule::wsd  ? 1 - std::sqrt(done)
                                                     : 0.5 * (1 + std::cos(M_PI * done));
  return s.rate * (s.finalRate + (1 - s.finalRate) * left);
}

} // namespace kiln
