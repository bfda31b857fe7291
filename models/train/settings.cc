// Ranges, JSON and the schedule.

#include "models/train/settings.h"
#include "dialect/dsl/Kernel.h"
#include "kernels/adamw.h"
#include "models/data/json.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace kiln {

static const std::pair<const char *, Type> dtypes[] = {{"fp32", f32}, {"bf16", bf16}, {"fp16", f16}};

const char *dtypeOf(Type type) {
  for (const auto &[name, named] : dtypes)
    if (named == type)
      return name;
  throw Error(fmt::format("expected a type of weights, but got {}", nameOf(type)), Fault::internal);
}

Type dtypeNamed(const std::string &flag, const std::string &text) {
  for (const auto &[name, type] : dtypes)
    if (text == name)
      return type;
  throw Error(fmt::format("expected '{}' to be fp32, bf16 or fp16, but got '{}'", flag, text));
}

void expectBetween(const char *name, int64_t value, int64_t most) {
  if (value < 1 || value > most)
    throw Error(fmt::format("expected '{}' to be at {} {}, but got {}", name, value < 1 ? "least" : "most",
                            value < 1 ? 1 : most, value));
}

void verifyBatch(int64_t sequences) { expectBetween("batch", sequences, largestSize); }

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
  int exponent = 0; // a power of two scales exactly
  const bool isPower = s.lossScale > 0 && std::frexp(s.lossScale, &exponent) == 0.5;
  expect(isPower && s.lossScale >= leastLossScale && s.lossScale <= mostLossScale, "loss-scale",
         "a power of two from 1 to 16777216", s.lossScale);
  expect(s.scaleWindow >= 0 && s.scaleWindow <= largestSize, "scale-window", "between 0 and 1048576",
         static_cast<double>(s.scaleWindow));
}

nlohmann::ordered_json settingsJson(const TrainSettings &s) {
  return {{"batch", s.batch},
          {"accumulate", s.accumulate},
          {"steps", s.steps},
          {"warmup", s.warmup},
          {"rate", s.rate},
          {"final_rate", s.finalRate},
          {"decay", s.decay},
          {"beta1", s.beta1},
          {"beta2", s.beta2},
          {"epsilon", s.epsilon},
          {"clip", s.clip},
          {"evaluate_every", s.evaluateEvery},
          {"seed", s.seed},
          {"precision", s.precision ? nlohmann::ordered_json(precisionNames.at(static_cast<size_t>(*s.precision)))
                                    : nlohmann::ordered_json()},
          {"dtype", dtypeOf(s.type)},
          {"master", s.master},
          {"rounding", roundingNames.at(static_cast<size_t>(s.rounding))},
          {"loss_scale", s.lossScale},
          {"scale_window", s.scaleWindow},
          {"save_dtype", dtypeOf(s.saveType)}};
}

TrainSettings settingsFrom(const JsonObject &j) {
  TrainSettings s;
  s.batch = j.integer("batch");
  s.accumulate = j.integer("accumulate");
  s.steps = j.integer("steps");
  s.warmup = j.integer("warmup");
  s.rate = j.number("rate");
  s.finalRate = j.number("final_rate");
  s.decay = j.number("decay");
  s.beta1 = j.number("beta1");
  s.beta2 = j.number("beta2");
  s.epsilon = j.number("epsilon");
  s.clip = j.number("clip");
  s.evaluateEvery = j.integer("evaluate_every");
  s.seed = j.natural("seed");
  if (j.has("precision"))
    s.precision = precisionNamed(j.text("precision"));
  if (!j.has("dtype")) // all were f32 once
    return s;
  s.type = dtypeNamed("dtype", j.text("dtype"));
  s.master = j.truth("master");
  s.rounding = roundingNamed(j.text("rounding"));
  s.lossScale = j.number("loss_scale");
  s.scaleWindow = j.integer("scale_window");
  s.saveType = dtypeNamed("save_dtype", j.text("save_dtype"));
  return s;
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
