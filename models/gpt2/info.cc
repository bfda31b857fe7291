// The commands info, profile and sample: a model's cost, the time of a step by kernel, and texts.

#include "models/generate/sample_command.h"
#include "models/gpt2/commands.h"
#include "models/gpt2/config.h"
#include "models/gpt2/network.h"
#include "models/gpt2/pretrained.h"
#include "models/observe/profiler.h"
#include "models/observe/trace.h"
#include "models/parallel/shards.h"
#include "models/tokens/tokenizer.h"
#include "models/train/memory.h"
#include "models/train/settings.h"
#include "runtime/Files.h"
#include "runtime/Streams.h"

#include <fmt/format.h>
#include <map>

namespace kiln {

static std::string megabytes(int64_t bytes) {
  return fmt::format("{:10.2f} MiB", static_cast<double>(bytes) / 1048576);
}

static std::string buffersText(const MemoryPlan &memory) {
  std::string text = fmt::format("\n{:>12} {:>12} {:>6} {:>6}  buffer\n", "offset", "bytes", "from", "to");
  for (const ArenaPlan::Entry &e : memory.training.entries)
    text += fmt::format("{:12} {:12} {:6} {:6}  {} {} {}\n", e.offset, e.bytes, e.begin, e.end, e.name, nameOf(e.type),
                        textOf(e.extents));
  return text;
}

/// Every launch of a micro-batch's gradient, and sums by kernel.
static std::string launchesText(const MemoryPlan &memory) {
  std::string text = fmt::format("\n{:>12} {:>12}  {:<28} kernel\n", "GFLOP", "MiB", "launch");
  const auto line = [&](const LaunchCost &cost) {
    text += fmt::format("{:12.4f} {:12.3f}  {:<28} {}\n", cost.flops / 1e9, static_cast<double>(cost.bytes) / 1048576,
                        cost.label, cost.kernel);
  };
  std::map<std::string, LaunchCost> sums;
  for (const LaunchCost &cost : memory.launches) {
    line(cost);
    LaunchCost &sum = sums.try_emplace(cost.kernel, LaunchCost{"all", cost.kernel, 0, 0}).first->second;
    sum.flops += cost.flops;
    sum.bytes += cost.bytes;
  }
  for (const auto &[kernel, sum] : sums)
    line(sum);
  return text;
}

/// Data sent by each of several ranks in a step, and the time it takes; unmeasured numbers are marked.
static std::string exchangeText(const InfoOptions &options, const Shards &shards, Type weights) {
  const ExchangePlan plan = exchangePlan(shards, bytesOf(weights));
  const bool given = options.bandwidth && options.bandwidth->bytes;
  const double bandwidth = given ? static_cast<double>(*options.bandwidth->bytes) : assumedBandwidth;
  return fmt::format("ranks        {}; master weights and moments are sharded (ZeRO-1); a rank sends in a step\n"
                     "  gradients  {}  (f32)\n  weights    {}  ({})\n"
                     "  time       {:10.4f} s at {:.2f} GB/s ({}) and {:.0f} us for each of {} exchanges (assumed), no "
                     "overlap with computation (assumed)\n",
                     shards.ranks, megabytes(plan.gradients), megabytes(plan.weights), nameOf(weights),
                     plan.seconds(bandwidth, assumedLatency), bandwidth / 1e9, given ? "given" : "assumed",
                     assumedLatency * 1e6, plan.rounds);
}

void info(const InfoOptions &options) {
  expectNoBatchTokens(options.settings);
  TrainSettings settings = applied(options.settings, gpt2Named(nameOf(options.model)).settings);
  expectBetween("--ranks", options.ranks, 65536);
  divide(settings, options.ranks);
  const int64_t batch = settings.batch;
  const Gpt2Config config = configured(chooseModel(options.model), settings);
  const std::shared_ptr<Device> device = openDevice(options.machine);
  const Network network(config);
  std::string budget;
  if (options.memory) {
    const FittedSettings fit = fitToMemoryWithTable(*device, network, settings, *options.memory, options.ranks);
    settings = fit.settings;
    budget = fit.note;
  }
  const MemoryPlan memory = planMemory(device->target(), network, network.shape(batch), settings, options.ranks);
  int64_t unshared = 0;
  for (const ArenaPlan::Entry &e : memory.training.entries)
    unshared += e.bytes;
  std::string text = fmt::format("model        {}\n", textOf(config));
  text += fmt::format("parameters   {} in {} tensors ({} of them decay)\n", network.parameters().count(),
                      network.parameters().all().size(), network.parameters().decayedCount());
  text += fmt::format("step         {} sequences, {} tokens, {:.3f} GFLOP, {} launches\n", batch,
                      batch * config.context, flopsOfStep(config, batch) / 1e9, memory.launches.size());
  text += fmt::format("memory\n  weights    {}  ({})\n", megabytes(memory.parameters), nameOf(config.type));
  if (memory.masters > 0)
    text += fmt::format("  master     {}\n", megabytes(memory.masters));
  text += fmt::format("  gradients  {}\n  moments    {}\n", megabytes(memory.gradients), megabytes(memory.moments));
  text += fmt::format("  activations{}  ({} buffers, {} without sharing)\n", megabytes(memory.activations),
                      memory.training.entries.size(), megabytes(unshared));
  if (memory.exchange > 0)
    text += fmt::format("  exchange   {}\n", megabytes(memory.exchange));
  text += fmt::format("  workspace  {}\n  batch      {}\n  total      {}\n", megabytes(memory.workspace),
                      megabytes(memory.batch), megabytes(memory.total()));
  text += budget;
  if (options.ranks > 1)
    text += exchangeText(options, Shards::of(network.parameters().count(), options.ranks), config.type);
  if (options.buffers)
    text += buffersText(memory);
  if (options.launches)
    text += launchesText(memory);
  writeResult(text);
}

// --- profile ---------------------------------------------------------------------------------------------------------

void profile(const ProfileOptions &options) {
  expectBetween("--steps", options.steps, largestSize);
  expectNoBatchTokens(options.settings);
  const TrainSettings settings = applied(options.settings, gpt2Named(nameOf(options.model)).settings);
  const Gpt2Config config = configured(chooseModel(options.model), settings);
  const Network network(config);
  const std::shared_ptr<Device> device = openDevice(options.machine);
  Trainer trainer(device, network, settings);
  trainer.initialize(settings.seed);
  const HostBatch batch = randomTokens(config, settings.batch, settings.seed);
  const auto take = [&](int64_t number, Profiler *profiler) {
    trainer.beginStep(learningRate(settings, 0), number);
    for (int64_t micro = 0; micro < settings.accumulate; ++micro)
      noted(profiler, Track::host, "gradient", [&] { trainer.addGradient(batch, micro); });
    return noted(profiler, Track::host, "update", [&] { return trainer.update(); });
  };
  take(1, nullptr);
  const Roof roof = measureRoof(*device, config.type, trainer.precision());
  Profiler profiler(trainer);
  for (int64_t number = 1; number <= options.steps; ++number) {
    noted(&profiler, Track::host, fmt::format("step {}", number), [&] { return take(number + 1, &profiler); });
    profiler.endStep();
  }
  const TraceFacts facts = profiler.facts(roof);
  if (options.trace)
    writeOutput(*options.trace, chromeTrace(profiler.stretches(), facts));
  writeResult(fmt::format("{}, micro-batches of {}\n{}", textOf(config), settings.batch,
                          profileText(profiler.stretches(), facts, profiler.isTime())));
}

// --- sample ----------------------------------------------------------------------------------------------------------

/// End-of-document tokens, if the vocabulary has any.
static std::vector<int32_t> findEnds(const Vocabulary &vocabulary) {
  std::vector<int32_t> ends;
  for (const std::optional<int32_t> token : {documentMark(vocabulary), documentEnd(vocabulary)})
    if (token)
      ends.push_back(*token);
  return ends;
}

void sample(const SampleOptions &options) {
  GenerationOptions writing = options.writing;
  if (!writing.prompt && !writing.promptFile)
    writing.prompt = "\n";
  const TrainedModel read = readTrained(options.folder, options.dtype);
  verifyTokens(read.config, read.vocabulary);
  const Network network(read.config);
  const std::shared_ptr<Device> device = openDevice(options.machine);
  const Tensor weights = uploaded(device, network, read.weights);
  const Tokenizer tokenizer(read.vocabulary.value_or(byteVocabulary()));
  write(
      "gpt2", [&](const Generator::Options &texts) { return Generator(device, network, weights, texts); },
      {.encode = [&](const std::string &text) { return tokenizer.encode(text, /*specials=*/true); },
       .decode = [&](std::span<const int32_t> tokens) { return tokenizer.decode(tokens); },
       .size = tokenizer.size(),
       .ends = findEnds(tokenizer.vocabulary())},
      writing);
}

} // namespace kiln
