// From options to a run.

#include "models/gpt2/train.h"
#include "models/gpt2/config_json.h"
#include "models/gpt2/init.h"
#include "models/train/loop.h"
#include "models/train/text_data.h"

#include <fmt/format.h>

namespace kiln {

namespace {
/// What a run goes on from.
struct Resumed {
  Gpt2Config config; // read first: an error in it names the file
  RunState state;
};
} // namespace

/// The checkpoint's state and model. Flags may repeat what its model is, not change it.
static Resumed resume(const TrainOptions &options, const RunFolder &folder) {
  Resumed r = folder.read([](const std::string &path) { return Resumed{readConfig(path), readRunState(path)}; });
  const Gpt2Config asked = modelOf(options.model, r.config);
  if (!(asked == r.config))
    throw Error(fmt::format("expected the checkpoint's model of {}, but got {}", textOf(r.config), textOf(asked)));
  verifyBytes(r.config);
  r.state.settings = settingsOf(options, r.state.settings);
  return r;
}

void train(const TrainOptions &options) {
  if (options.resume && options.init)
    throw Error("expected one of --resume, which goes on, and --init, which begins anew, but got both");
  verify(static_cast<const RunOptions &>(options));
  const std::optional<Beginning> beginning = options.resume ? std::nullopt : std::optional<Beginning>(options);
  RunFolder folder(options);
  const Resumed begun =
      beginning ? Resumed{beginning->config(), {.settings = beginning->settings(), .init = beginning->weights()}}
                : resume(options, folder);
  const Network network(begun.config);
  const uint64_t seed = begun.state.settings.seed;
  TextData data(options.data, begun.config.context, seed);
  train(Run{.options = options,
            .folder = folder,
            .model = network,
            .data = data,
            .state = begun.state,
            .begin = [&](Trainer &trainer) { beginning->fill(trainer, network, seed); },
            .notes = beginning ? beginning->notes() : std::vector<std::string>{}});
}

} // namespace kiln
