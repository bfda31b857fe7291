// Runs one micro-batch on both devices, with random tokens and weights or with llm.c's. Or compares its gradients with
// differences of its loss.

#include "models/generate/generator.h"
#include "models/gpt2/commands.h"
#include "models/gpt2/llmc.h"
#include "models/gpt2/network.h"
#include "models/train/trainer.h"
#include "runtime/Streams.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <random>

namespace kiln {

namespace {
/// The results of a device by name, in the order of the table.
using Results = std::vector<std::pair<std::string, std::vector<float>>>;
/// Their errors by name.
using Errors = std::vector<std::pair<std::string, double>>;
} // namespace

/// Each device is within five roundings of the exact gradient for two layers; errors of layers add up as a random walk.
/// Errors in f32, with products rounded once and sums of up to 2¹⁶ terms, are below 1e-4.
static double errorBound(const Gpt2Config &config, Precision precision) {
  if (config.type == f32 && precision != Precision::tf32)
    return 1e-4;
  const double unit = config.type == bf16 ? 0x1p-8 : 0x1p-11;
  return 10 * unit * std::sqrt(static_cast<double>(std::max<int64_t>(config.layers, 2)) / 2);
}

namespace {
/// A batch and the weights; without weights, random ones are drawn.
struct Task {
  Gpt2Config config;
  TrainSettings settings;
  HostBatch batch;
  std::optional<HostBuffers> weights = {};
};
} // namespace

static Results resultsOn(const std::shared_ptr<Device> &device, const Network &network, const Task &task) {
  Trainer trainer(device, network, task.settings);
  trainer.initialize(task.settings.seed);
  if (task.weights)
    trainer.upload(*task.weights);
  Results results;
  const std::vector<int32_t> tokens = task.batch.at("tokens").numbers<int32_t>();
  Generator generator(device, network, trainer.weights(), {});
  generator.append(0, std::span(tokens).first(network.config().context));
  results.emplace_back("logits", generator.next()[0]);
  results.emplace_back("loss", std::vector{static_cast<float>(trainer.lossSum(task.batch))});
  trainer.beginStep(0, 1);
  trainer.addGradient(task.batch, 0);
  const std::vector<float> gradients = trainer.gradients();
  for (const Parameter &p : network.parameters().all())
    results.emplace_back(p.name, std::vector(gradients.begin() + p.offset, gradients.begin() + p.offset + p.count()));
  return results;
}

/// The contents of llm.c's files.
static Results resultsIn(const LlmcDebugState &state, const TestOptions &options, const Network &network) {
  const int64_t last = (state.length - 1) * network.config().vocab;
  Results results;
  results.emplace_back("logits",
                       std::vector(state.logits.begin() + last, state.logits.begin() + last + network.config().vocab));
  results.emplace_back("loss", std::vector{static_cast<float>(state.loss * std::ssize(state.targets))});
  const std::vector<float> gradients = readLlmcGradient(*options.debugState, *options.llmc, network.parameters());
  for (const Parameter &p : network.parameters().all())
    results.emplace_back(p.name, std::vector(gradients.begin() + p.offset, gradients.begin() + p.offset + p.count()));
  return results;
}

/// ‖got − want‖ / ‖want‖; 0 if both are zero.
static double relativeError(const std::vector<float> &got, const std::vector<float> &want) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    difference += std::pow(double(got[i]) - want[i], 2);
    norm += std::pow(double(want[i]), 2);
  }
  return difference == 0 ? 0 : std::sqrt(difference / norm);
}

static Errors relativeErrors(const Results &got, const Results &want) {
  Errors errors;
  for (size_t i = 0; i < want.size(); ++i)
    errors.emplace_back(want[i].first, relativeError(got[i].second, want[i].second));
  return errors;
}

/// The slope of a function at 0 by differences. Their truncation error falls with the step and their rounding error
/// rises, so the estimate counts that changes least when the step is doubled.
static double slopeOf(const std::function<double(double)> &value) {
  std::vector<double> slopes, estimates; // at steps of 0.002, 0.004, …; estimates without the next term of the series
  double slope = 0, least = INFINITY;
  for (double step = 0.002; step < 0.2; step *= 2) {
    slopes.push_back((value(step) - value(-step)) / (2 * step));
    if (slopes.size() > 1)
      estimates.push_back((4 * slopes.end()[-2] - slopes.back()) / 3);
    if (estimates.size() > 1)
      if (const double change = std::abs(estimates.back() - estimates.end()[-2]); change < least) {
        least = change;
        slope = estimates.end()[-2];
      }
  }
  return slope;
}

/// Bound of slopeErrors(). It is measured: right gradients of 18 models and seeds were within 3.5e-3, and a backward
/// pass with mean(g) in place of mean(g · x̂) was 3.5e-2 off.
static constexpr double slopeBound = 1e-2;

/// Moves each tensor along a random direction of ±1. The slope of the mean loss by the gradient differs from that by
/// differences of the loss by this, divided by the norm of the tensor's gradient. Noise of ±0.15 on the initial weights
/// makes all gradients large enough for losses in f32.
static Errors slopeErrors(const std::shared_ptr<Device> &device, const Network &network, const Task &task) {
  Trainer trainer(device, network, task.settings);
  trainer.initialize(task.settings.seed);
  std::mt19937_64 random(task.settings.seed);
  const std::vector<char> initial = trainer.download().values;
  std::vector<float> weights(initial.size() / sizeof(float));
  std::memcpy(weights.data(), initial.data(), initial.size());
  for (float &w : weights)
    w += 0.15f * (static_cast<float>(random() >> 40) * 0x1p-23f - 1);
  const auto upload = [&](const std::vector<float> &values) {
    const char *const bytes = reinterpret_cast<const char *>(values.data());
    trainer.uploadWeights({bytes, bytes + initial.size()});
  };
  upload(weights);
  trainer.beginStep(0, 1);
  trainer.addGradient(task.batch, 0);
  const std::vector<float> gradients = trainer.gradients();
  const auto targets = static_cast<double>(task.settings.batch * network.config().context);
  Errors errors;
  for (const Parameter &p : network.parameters().all()) {
    std::vector<float> signs(p.count());
    double squares = 0, slope = 0;
    for (int64_t i = 0; i < p.count(); ++i) {
      const double gradient = gradients[p.offset + i];
      signs[i] = random() % 2 ? 1.0f : -1.0f;
      slope += signs[i] * gradient;
      squares += gradient * gradient;
    }
    const double measured = slopeOf([&](double distance) {
      std::vector<float> moved = weights;
      for (int64_t i = 0; i < p.count(); ++i)
        moved[p.offset + i] += static_cast<float>(distance) * signs[i];
      upload(moved);
      return trainer.lossSum(task.batch) / targets;
    });
    errors.emplace_back(p.name, std::abs(measured - slope) / std::max(std::sqrt(squares), 1e-12));
  }
  return errors;
}

static Task randomTask(const TestOptions &options) {
  if (options.batch < 1)
    throw Error(fmt::format("expected '--batch' to be at least 1, but got {}", options.batch));
  Task task = {chooseModel(options.model), {.batch = options.batch, .seed = options.seed}, {}};
  task.batch = randomTokens(task.config, options.batch, options.seed);
  return task;
}

static Task llmcTask(const TestOptions &options, const LlmcDebugState &state, Gpt2Config config) {
  config.context = state.length;
  config.type = f32;
  Task task = {config, {.batch = state.sequences}, languageBatch(state.tokens, state.targets)};
  task.weights = readLlmc(*options.llmc, {}, config, Network(config).parameters()).buffers;
  return task;
}

/// Prints a table; returns whether no error is above the bound.
static bool report(const std::string &title, const Errors &errors, double bound) {
  size_t width = 0, beyond = 0;
  for (const auto &[name, error] : errors)
    width = std::max(width, name.size());
  writeResult(fmt::format("{}\n{:<{}}  error     bound\n", title, "", width));
  for (const auto &[name, error] : errors) {
    const bool isWithin = error <= bound; // false for NaN
    beyond += !isWithin;
    writeResult(fmt::format("{:<{}}  {:.2e}  {:.2e}{}\n", name, width, error, bound, isWithin ? "" : "  beyond"));
  }
  writeResult(beyond == 0 ? "all are within their bounds\n"
                          : fmt::format("{} of {} are beyond\n", beyond, errors.size()));
  return beyond == 0;
}

bool compare(const TestOptions &options) {
  std::optional<LlmcDebugState> state;
  std::optional<Gpt2Config> config;
  if (options.llmc) {
    config = readLlmcConfig(*options.llmc);
    state = readLlmcDebugState(*options.debugState, *config);
  }
  Task task = state ? llmcTask(options, *state, *config) : randomTask(options);
  if (options.dtype)
    task.settings.type = task.config.type = dtypeNamed("dtype", *options.dtype);
  const Network network(task.config);
  const std::string title = fmt::format("{} in {}: ", textOf(task.config), dtypeName(task.config.type));
  const bool isSlopes = !state && options.against == "differences";
  if (isSlopes && task.config.type != f32)
    throw Error(fmt::format("expected '--dtype' fp32 for differences of the loss, but got {}", *options.dtype));
  const std::shared_ptr<Device> device = openDevice(options.machine);
  if (isSlopes) {
    task.settings.precision = Precision::ieee;
    return report(title + fmt::format("gradients of '{}' compared with differences of its loss", device->name()),
                  slopeErrors(device, network, task), slopeBound);
  }
  const std::shared_ptr<Device> other = state ? nullptr : Device::open(options.against);
  const Results got = resultsOn(device, network, task),
                want = state ? resultsIn(*state, options, network) : resultsOn(other, network, task);
  double bound = 0; // of the device that rounds more
  for (const Device *each : {device.get(), other.get()})
    if (each)
      bound = std::max(bound, errorBound(task.config, each->target().precisionOf(task.config.type)));
  return report(title +
                    fmt::format("'{}' compared with '{}'", device->name(), state ? *options.debugState : other->name()),
                relativeErrors(got, want), bound);
}

} // namespace kiln
