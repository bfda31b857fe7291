// The commands of `bytelm`.

#include "models/bytelm/commands.h"
#include "models/bytelm/network.h"
#include "models/bytelm/shifted.h"
#include "models/train/configured.h"
#include "models/train/language_data.h"
#include "models/train/loop.h"
#include "models/train/memory_planner.h"
#include "runtime/Streams.h"

#include <fmt/format.h>

namespace kiln::bytelm {

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
  const ByteConfig asked = modelOf(options.model, start.config);
  if (!asked.sameModel(start.config))
    throw Error(
        fmt::format("the checkpoint's model has {}, but the flags ask for {}", textOf(start.config), textOf(asked)));
  start.notes = goOnWith(start.state, applied(options, start.state.settings));
  return start;
}

void train(const TrainOptions &options) {
  verify(static_cast<const RunOptions &>(options));
  verify(options, options);
  expectNoBatchTokens(options);
  Start start = {modelOf(options.model), {}};
  if (!options.resume)
    start.state.settings = applied(options, settingsOf(options.model));
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
  LanguageData bytes({.data = options.data, .llmcRows = llmcRowsOf(settings)}, start.config.context, settings.seed);
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
  TrainSettings settings = applied(options.settings, settingsOf(options.model));
  const ByteConfig config = configured(modelOf(options.model), settings);
  const ByteNetwork network(config);
  std::string text = fmt::format("model        {}\n\n", textOf(config));
  int64_t total = 0;
  for (const Parameter &p : network.parameters().all()) {
    text += fmt::format("{:12}  {:<12} {}\n", p.count(), kiln::textOf(p.shape), p.name);
    total += p.count();
  }
  text += fmt::format("{:12}  parameters\n\n", total);
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

} // namespace kiln::bytelm
