// Runs one micro-batch on both devices, with random tokens and weights or with llm.c's.

#include "models/generate/generator.h"
#include "models/gpt2/commands.h"
#include "models/gpt2/llmc.h"
#include "models/gpt2/network.h"
#include "models/train/trainer.h"
#include "runtime/Streams.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace kiln {

namespace {
/// The results of a device by name, in the order of the table.
using Results = std::vector<std::pair<std::string, std::vector<float>>>;
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
  const std::shared_ptr<Device> device = openDevice(options.machine);
  const std::shared_ptr<Device> other = state ? nullptr : Device::open(options.against);
  const Results got = resultsOn(device, network, task),
                want = state ? resultsIn(*state, options, network) : resultsOn(other, network, task);
  const double bound = errorBound(task.config, device->target().precisionOf(task.config.type));
  size_t width = 0, beyond = 0;
  for (const auto &[name, values] : want)
    width = std::max(width, name.size());
  writeResult(fmt::format("{} in {}: '{}' compared with '{}'\n{:<{}}  error     bound\n", textOf(task.config),
                          dtypeName(task.config.type), device->name(), state ? *options.debugState : other->name(), "",
                          width));
  for (size_t i = 0; i < want.size(); ++i) {
    const double error = relativeError(got[i].second, want[i].second);
    const bool isWithin = error <= bound; // false for NaN
    beyond += !isWithin;
    writeResult(
        fmt::format("{:<{}}  {:.2e}  {:.2e}{}\n", want[i].first, width, error, bound, isWithin ? "" : "  beyond"));
  }
  writeResult(beyond == 0 ? "all are within their bounds\n"
                          : fmt::format("{} of {} are beyond\n", beyond, want.size()));
  return beyond == 0;
}

} // namespace kiln
