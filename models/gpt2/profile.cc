// Profiles steps of a trainer.

#include "models/gpt2/commands.h"
#include "models/gpt2/config.h"
#include "models/gpt2/network.h"
#include "models/observe/profiler.h"
#include "models/observe/trace.h"
#include "models/train/settings.h"
#include "runtime/Files.h"
#include "runtime/Streams.h"

#include <fmt/format.h>

namespace kiln {

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

} // namespace kiln
