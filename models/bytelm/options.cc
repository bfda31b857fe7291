// The flags of bytelm, for CLI11.

#include "models/bytelm/commands.h"
#include "models/train/configured.h"
#include "models/train/flags.h"

#include <algorithm>
#include <fmt/ranges.h>

namespace kiln::bytelm {

static void addModel(CLI::App *app, ModelOptions &o) {
  std::string names;
  for (const NamedByteModel &model : byteModels())
    names += (names.empty() ? "" : ", ") + model.name;
  app->add_option("--model", o.model, "size by name: " + names + " (base)");
  addNumber<int64_t>(app, "--layers", o.layers, "transformer blocks");
  addNumber<int64_t>(app, "--heads", o.heads, "attention heads; their number divides the width");
  addNumber<int64_t>(app, "--width", o.width, "channels");
  addNumber<int64_t>(app, "--inner", o.inner, "hidden channels of the MLP");
  addNumber<int64_t>(app, "--context", o.context, "bytes of a sequence");
}

static CLI::App *addTrain(CLI::App &app, TrainOptions &o) {
  CLI::App *train = app.add_subcommand("train", "train on a file");
  train->add_option("--data", o.data, "the file; its last tenth is the validation set")->required();
  addModel(train, o.model);
  train->add_option_function<std::string>(
      "--table-init",
      [&o](const std::string &text) {
        if (text != "torch" && text != "jax")
          throw Error(fmt::format("expected '--table-init' to be torch or jax, but got '{}'", text));
        o.tables = text == "jax" ? TableInit::jax : TableInit::torch;
      },
      "how tables begin: torch (normal of deviation 1), jax (0.01) (torch)");
  train->add_option_function<std::string>(
      "--linear-init",
      [&o](const std::string &text) {
        const auto found = std::find(linearStartNames.begin(), linearStartNames.end(), text);
        if (found == linearStartNames.end())
          throw Error(fmt::format("expected '--linear-init' to be {}, but got '{}'",
                                  fmt::join(linearStartNames, " or "), text));
        o.linears = static_cast<LinearStart>(found - linearStartNames.begin());
      },
      "how linear layers begin: uniform (weights and biases within 1/sqrt(in)), pytorch (attention by Xavier, without "
      "biases), normal (as GPT-2's) (the model's)");
  addSettingFlags(train, o);
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
  addMemoryFlags(info, o.settings);
  addBudgetFlag(info, o.memory);
  addMachineFlags(info, o.machine);
  return info;
}

std::optional<Command> parseCommand(int argc, const char *const *argv, const std::string &version) {
  return parseCommands<TrainOptions, SampleOptions, InfoOptions, PlotOptions>(
      "bytelm", "A model of bytes, trained by kernels written in Kiln's tile language", version, argc, argv, addTrain,
      addSample, addInfo, addPlot);
}

static const NamedByteModel &named(const ModelOptions &o) { return byteModelNamed(o.model.value_or("base")); }

ByteConfig modelOf(const ModelOptions &o, const std::optional<ByteConfig> &base) {
  ByteConfig config = base && !o.model ? *base : named(o).config;
  replaceSizes(config, o);
  verify(config);
  return config;
}

TrainSettings settingsOf(const ModelOptions &o) { return named(o).settings; }

} // namespace kiln::bytelm
