// Shared by the tests of layers: a model with any options, a random batch, and a comparison of its gradient with the
// tape's.

#pragma once

#include "kernels/attention.h"
#include "models/data/batches.h"
#include "models/nn/decoder.h"
#include "models/train/trainer.h"
#include "test/kernels/host_dropout.h"
#include "test/models/reference/decoder.h"

#include <cmath>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

namespace kiln::test {

class DecoderModel : public DecoderNetwork {
public:
  explicit DecoderModel(const DecoderOptions &options, Type type = f32)
      : DecoderNetwork(plainNames(), options, type, DecayOn::matrices), options(options) {}
  double flops(const BatchShape &) const override { return 0; }
  std::string text() const override { return "a model of options"; }
  nlohmann::ordered_json configJson(Type) const override { return {}; }

  const DecoderOptions options;
};

/// Tokens, targets and positions; some tokens and targets are missing.
inline DecoderBatch randomBatch(const DecoderOptions &o, int64_t sequences, int64_t time, uint32_t seed) {
  std::mt19937 engine(seed);
  DecoderBatch batch{sequences, time, {}, {}, {}, {}, {}};
  for (int64_t i = 0; i < sequences * time; ++i) {
    const bool isMissing = engine() % 8 == 0 && (o.embedding.scale != 1 || !o.head.tied);
    batch.tokens.push_back(isMissing ? -1 : static_cast<int32_t>(engine() % o.vocab));
    batch.targets.push_back(engine() % 6 == 0 && i > 0 ? ignoredTarget : static_cast<int32_t>(engine() % o.vocab));
    if (o.embedding.givesPositions)
      batch.positions.push_back(static_cast<int32_t>(engine() % o.context));
  }
  for (int64_t i = 0, begin = 0; i < sequences * time && o.givesRanges; ++i) { // documents
    begin = i % time == 0 ? 0 : engine() % 4 == 0 ? i % time : begin;
    batch.ranges.insert(batch.ranges.end(), {static_cast<int32_t>(begin), static_cast<int32_t>(i % time + 1)});
  }
  return batch;
}

/// Sequences `first` … `first + count`, as a micro-batch brings them.
inline HostBatch makeInputs(const DecoderBatch &b, int64_t first, int64_t count) {
  const auto cut = [&](const std::vector<int32_t> &all) {
    return std::vector<int32_t>(all.begin() + first * b.time, all.begin() + (first + count) * b.time);
  };
  HostBatch batch = languageBatch(cut(b.tokens), cut(b.targets));
  if (!b.positions.empty())
    batch["positions"] = cut(b.positions);
  if (!b.ranges.empty()) {
    const std::vector<int32_t> ranges(b.ranges.begin() + 2 * first * b.time,
                                      b.ranges.begin() + 2 * (first + count) * b.time);
    batch["ranges"] = ranges;
    batch["column ranges"] = queryRanges(ranges, b.time, b.time);
  }
  return batch;
}
inline int64_t presentIn(const DecoderBatch &b) {
  return std::count_if(b.targets.begin(), b.targets.end(), [](int32_t target) { return target >= 0; });
}

/// Random weights, none of them zero or one; numbers of `type`, held in f32. Fixed tables are unchanged.
inline HostBuffers randomBuffers(const ParameterList &list, uint32_t seed, Type type = f32) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, 0.25f);
  std::vector<double> drawn(list.count());
  for (const Parameter &p : list.all()) {
    const std::vector<float> begun = firstNumbers(p, Random(seed, Stream::weights), 0);
    for (int64_t i = 0; i < p.count(); ++i)
      drawn[p.offset + i] =
          p.role == Role::fixed ? begun[i] : normal(engine) + (p.init.kind == Init::Kind::ones ? 1.0f : 0.0f);
  }
  std::vector<char> rounded(list.count() * bytesOf(type)), values(list.count() * bytesOf(f32));
  fromDoubles(drawn, type, rounded.data());
  fromDoubles(toDoubles(rounded.data(), type, list.count()), f32, values.data());
  return {values, std::vector<float>(list.count()), std::vector<float>(list.count())};
}

/// The settings of a step of `accumulate` micro-batches of `batch` sequences, whose products are as exact everywhere.
inline TrainSettings settingsOf(int64_t batch, int64_t accumulate = 1) {
  return {.batch = batch, .accumulate = accumulate, .seed = 5, .precision = Precision::ieee};
}

/// Fills all that a step or an evaluation writes before it reads it with bytes that are NaN as any type, and −1.
inline void poison(Trainer &trainer) {
  trainer.prepare();
  for (const TensorRef &place : trainer.scratch()) {
    const std::vector<char> bytes(place.bytes(), '\xff');
    trainer.machine()->upload(place.data, bytes.data(), place.bytes());
  }
}

/// The dropout factors of a site in step `number` of a run of seed 5, sequence by sequence of `time` rows.
inline std::vector<double> maskOf(const DecoderOptions &o, const DropoutRate &rate, int64_t number, int64_t site,
                                  int64_t time, int64_t rows, int64_t columns) {
  const std::array<uint32_t, 4> words =
      Random(5, Stream::dropout).block(static_cast<uint64_t>(number), static_cast<uint32_t>(site));
  const auto key = static_cast<int64_t>(uint64_t{words[0]} << 32 | words[1]);
  std::vector<double> mask;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      mask.push_back(isKept(key, r / time * o.context + r % time, columns, c, rate.threshold()) ? rate.scale() : 0);
  return mask;
}

/// The tape's gradient of each parameter, by its name, and its loss; and for each gradient the deviation of the norm of
/// its rounding error.
struct TapeGradient {
  std::map<std::string, std::vector<double>> gradients;
  double loss;
  std::map<std::string, double> deviations = {};
};
template <class Loss>
TapeGradient tapeGradient(const ParameterList &list, const HostBuffers &buffers, const Loss &lossOn,
                          const Tape::Rounding &rounding = {}) {
  Tape tape;
  std::map<std::string, Value> values;
  const auto *numbers = reinterpret_cast<const float *>(buffers.values.data());
  for (const Parameter &p : list.all()) {
    const int64_t columns = p.shape.back();
    values.emplace(p.name,
                   tape.value(p.count() / columns, columns, {numbers + p.offset, numbers + p.offset + p.count()}));
  }
  tape.setRounding(rounding);
  const Value loss = lossOn(tape, values);
  tape.play(loss);
  TapeGradient result{{}, loss.numbers()[0]};
  for (auto &[name, value] : values)
    result.gradients[name] = value.gradient();
  return result;
}

/// Sets the deviations: over tapes that round every number and every gradient stochastically to `type`, the root of the
/// mean of ‖rounded − exact‖². These are the roundings of a model's tensors, with the condition of later operations;
/// their number is not assumed. Kernels round to nearest, whose errors have half the variance (tape.h), so theirs are
/// smaller by a factor of √2; in narrow types by more, because values in registers are f32.
template <class Loss>
void setDeviations(TapeGradient &exact, const ParameterList &list, const HostBuffers &buffers, Type type,
                   const Loss &lossOn) {
  constexpr uint32_t tapes = 16;
  for (uint32_t seed = 1; seed <= tapes; ++seed) {
    const Tape::Rounding rounding = type == bf16  ? stochasticRounding(8, -126, seed)
                                    : type == f16 ? stochasticRounding(11, -14, seed)
                                                  : stochasticRounding(24, -126, seed);
    const TapeGradient rounded = tapeGradient(list, buffers, lossOn, rounding);
    for (const auto &[name, gradient] : exact.gradients)
      exact.deviations[name] += squaredDistance(rounded.gradients.at(name), gradient) / tapes;
  }
  for (auto &[name, deviation] : exact.deviations)
    deviation = std::sqrt(deviation);
}

/// With the deviations of roundings to `type`, if given.
inline TapeGradient tapeGradient(const DecoderModel &model, const HostBuffers &buffers, const DecoderBatch &batch,
                                 std::optional<Type> type = {}) {
  const auto lossOn = [&](Tape &tape, std::map<std::string, Value> &values) {
    return decoderLoss(tape, model.options, values, batch);
  };
  TapeGradient exact = tapeGradient(model.parameters(), buffers, lossOn);
  if (type)
    setDeviations(exact, model.parameters(), buffers, *type, lossOn);
  return exact;
}

/// Terms of the longest sum in these models: of a feed-forward's width of 80.
inline constexpr double longestSum = 80;

/// The number of these deviations by which a gradient may differ. Its error is a sum of many independent roundings, so
/// it is nearly normal, and has one direction at worst. One normal number of 1.7 million exceeds five deviations, and
/// the tests compare thousands. The kernels' deviations are 1/√2 of the tape's, which rounds a sum once, as kernels do
/// in narrow types. In f32, kernels round a sum once per term. The first i of n independent terms have i/n of the final
/// square on average, so the n roundings together have n/2 times the variance of the last one.
inline double mostDeviations(Type type) { return 5 / std::sqrt(2) * (type == f32 ? std::sqrt(1 + longestSum / 2) : 1); }

/// Expects the flat gradient `got` of a run in `type` to equal the tape's, within `mostDeviations` deviations of
/// rounding.
inline void expectGradients(const Model &model, const std::vector<float> &got, const TapeGradient &want, Type type) {
  for (const Parameter &p : model.parameters().all()) {
    if (p.role == Role::fixed)
      continue;
    double difference = 0, size = 0;
    const std::vector<double> &exact = want.gradients.at(p.name);
    for (int64_t i = 0; i < p.count(); ++i) {
      difference += std::pow(static_cast<double>(got[p.offset + i]) - exact[i], 2);
      size += exact[i] * exact[i];
    }
    EXPECT_LE(std::sqrt(difference), mostDeviations(type) * want.deviations.at(p.name))
        << p.name << ", of norm " << std::sqrt(size);
  }
}

} // namespace kiln::test
