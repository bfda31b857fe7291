// The commands of `bytelm`, and their flags for CLI11.

#include "models/bytelm/commands.h"
#include "models/bytelm/network.h"
#include "models/generate/sample_command.h"
#include "models/train/checkpoint.h"
#include "models/train/flags.h"
#include "models/train/language_data.h"
#include "models/train/loop.h"
#include "models/train/memory.h"
#include "models/train/settings.h"
#include "runtime/Streams.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::bytelm {

//===-- Flags ---------------------------------------------------------------------------------------------------===//

static constexpr const char *defaultModel = "base";

static void addModel(CLI::App *app, ModelOptions &o) {
  app->add_option("--model", o.model, fmt::format("size by name: {}", fmt::join(presetNames(byteModels()), ", ")))
      ->default_str(defaultModel)
      ->group("Model");
  addSizeFlags(app, o, "transformer blocks", "hidden channels of the MLP", "bytes of a sequence");
}

static CLI::App *addTrain(CLI::App &app, TrainOptions &o) {
  CLI::App *train = app.add_subcommand("train", "train on a file");
  train->add_option("--data", o.data, "the file; its last tenth is the validation set")->required();
  addModel(train, o.model);
  addChoice<TableInit>(train, "--table-init", o.tables, tableInitNames,
                       "how tables begin: torch (normal of deviation 1), jax (0.01) (torch)")
      ->group("Model");
  addChoice<LinearStart>(
      train, "--linear-init", o.linears, linearStartNames,
      "how linear layers begin: uniform (weights and biases within 1/sqrt(in)), pytorch (attention by "
      "Xavier, without biases), normal (as GPT-2's) (the model's)")
      ->group("Model");
  addSettingFlags(train, o, defaultModel, byteModelNamed(defaultModel).settings);
  addRunFlags(train, o);
  return train;
}

static CLI::App *addSample(CLI::App &app, SampleOptions &o) {
  CLI::App *sample = app.add_subcommand("sample", "generate bytes with a trained model");
  sample->add_option("--out,--model-dir", o.folder, "a run's folder, or a checkpoint")->required();
  addGenerationFlags(sample, o.writing, "byte", "default: no prompt");
  addMachineFlags(sample, o.machine);
  return sample;
}

static CLI::App *addInfo(CLI::App &app, InfoOptions &o) {
  CLI::App *info = app.add_subcommand("info", "print the parameters and the memory of a step");
  addModel(info, o.model);
  addMemoryFlags(info, o.settings, defaultModel, byteModelNamed(defaultModel).settings);
  addBudgetFlag(info, o.memory);
  addMachineFlags(info, o.machine);
  return info;
}

std::optional<Command> parseCommand(int argc, const char *const *argv, const std::string &version) {
  return parseCommands<TrainOptions, SampleOptions, InfoOptions, PlotOptions>(
      "bytelm", "A model of bytes, trained by kernels written in Kiln's tile language", version, argc, argv, addTrain,
      addSample, addInfo, addPlot);
}

static const NamedByteModel &named(const ModelOptions &o) { return byteModelNamed(o.model.value_or(defaultModel)); }

ByteConfig chooseModel(const ModelOptions &o, const std::optional<ByteConfig> &base) {
  ByteConfig config = base && !o.model ? *base : named(o).config;
  replaceSizes(config, o);
  verify(config);
  return config;
}

TrainSettings chooseSettings(const ModelOptions &o) { return named(o).settings; }

//===-- Training and information --------------------------------------------------------------------------------===//

namespace {
/// The initial state of a new or resumed run.
struct Start {
  ByteConfig config;
  RunState state;
  std::vector<std::string> notes = {};
};
} // namespace

/// The checkpoint's state and model. Flags may repeat the model's properties, but not change them.
static Start resume(const TrainOptions &options, const RunFolder &folder) {
  Start start = folder.read([](const std::string &path) { return Start{readByteConfig(path), readRunState(path)}; });
  const ByteConfig asked = chooseModel(options.model, start.config);
  expectModel(asked.sameModel(start.config), "the checkpoint's model", start.config, asked);
  start.notes = goOnWith(start.state, applied(options, start.state.settings));
  return start;
}

void train(const TrainOptions &options) {
  verify(static_cast<const RunOptions &>(options));
  verify(options, options);
  expectNoBatchTokens(options);
  Start start = {chooseModel(options.model), {}};
  if (!options.resume)
    start.state.settings = applied(options, chooseSettings(options.model));
  RunFolder folder(options, openRanks());
  if (options.resume)
    start = resume(options, folder);
  TrainSettings &settings = start.state.settings;
  if (const std::optional<std::string> cut = divide(settings, folder.ranks().size()))
    start.notes.push_back(*cut);
  if (settings.batching != Batching::stream)
    throw Error("--batching must be stream; bytes have no documents");
  start.config = configured(start.config, settings);
  start.config.tables = options.tables;
  start.config.linears = options.linears.value_or(start.config.linears);
  const ByteNetwork network(start.config);
  LanguageData bytes({.data = options.data, .llmcRows = rowsOfLlmc(settings)}, start.config.context, settings.seed);
  ShiftedData data(bytes, start.config.context);
  const uint64_t seed = settings.seed;
  kiln::train(Run{.options = options,
                  .folder = folder,
                  .model = network,
                  .data = data,
                  .state = start.state,
                  .begin = [=](Trainer &trainer) { trainer.initialize(seed); },
                  .notes = start.notes});
}

void info(const InfoOptions &options) {
  expectNoBatchTokens(options.settings);
  TrainSettings settings = applied(options.settings, chooseSettings(options.model));
  const ByteConfig config = configured(chooseModel(options.model), settings);
  const ByteNetwork network(config);
  std::string text = fmt::format("model        {}\n\n{}\n", textOf(config), kiln::textOf(network.parameters()));
  const std::shared_ptr<Device> device = openDevice(options.machine);
  std::string budget;
  if (options.memory) {
    const FittedSettings fit = fitToMemoryWithTable(*device, network, settings, *options.memory);
    settings = fit.settings;
    budget = fit.note;
  }
  const MemoryPlan memory = planMemory(device->target(), network, network.shape(settings.batch), settings);
  text += fmt::format("memory       {:.2f} MiB for micro-batches of {} sequences, {:.2f} of them activations\n",
                      static_cast<double>(memory.total()) / 1048576, settings.batch,
                      static_cast<double>(memory.activations) / 1048576);
  text +=
      fmt::format("step         {:.3f} GFLOP in {} micro-batches\n",
                  flopsOfStep(config, settings.batch * settings.accumulate, config.context) / 1e9, settings.accumulate);
  writeResult(text + budget);
}

//===-- Sampling ------------------------------------------------------------------------------------------------===//

void sample(const SampleOptions &options) {
  const std::string checkpoint = newestCheckpoint(options.folder).value_or(options.folder);
  const RunState state = readRunState(checkpoint);
  ByteConfig config = readByteConfig(checkpoint);
  config.dropout = getDropout(state.settings);
  const ByteNetwork network(config);
  const std::shared_ptr<Device> device = openDevice(options.machine);
  const Tensor weights = uploaded(device, network, readBuffers(checkpoint, network).values);
  const auto generator = [&](Generator::Options texts) {
    texts.front = -1;
    return Generator(device, network, weights, std::move(texts));
  };
  write("bytelm", generator,
        {.encode =
             [](const std::string &text) {
               const auto *bytes = reinterpret_cast<const unsigned char *>(text.data());
               return std::vector<int32_t>(bytes, bytes + text.size());
             },
         .decode = [](std::span<const int32_t> bytes) { return std::string(bytes.begin(), bytes.end()); },
         .size = ByteConfig::vocab,
         .beginsAlone = true},
        options.writing);
}

} // namespace kiln::bytelm
