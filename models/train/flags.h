// Flags that all trainers have, by CLI11, and hints for unknown ones.

#pragma once

#include "dialect/dsl/Kernel.h"
#include "models/train/number_text.h"
#include "models/train/options.h"

#include <CLI/CLI.hpp>
#include <tuple>
#include <variant>

namespace kiln {

/// Adds a flag with a number of type T, with our message for a text that is not one.
template <class T, class Target>
CLI::Option *addNumber(CLI::App *app, const std::string &flag, Target &target, const std::string &text) {
  return app->add_option(flag, target, text)->check([flag](const std::string &got) {
    numberIn<T>(flag, got);
    return std::string();
  });
}

/// Adds a flag whose value is one of `names`, those of an enumeration in order.
template <class Enum, class Target, size_t N>
CLI::Option *addChoice(CLI::App *app, const std::string &flag, Target &target, const std::array<const char *, N> &names,
                       const std::string &text) {
  const auto take = [flag, &target, &names](const std::string &got) {
    target = static_cast<Enum>(parseChoice(flag, got, {names.begin(), names.end()}));
  };
  return app->add_option_function<std::string>(flag, take, text)->type_name("TEXT");
}

/// Lists the flags that `add` adds below a heading of --help.
template <class Add> void addBelow(CLI::App *app, const std::string &heading, const Add &add) {
  const std::string before = app->option_defaults()->get_group();
  app->option_defaults()->group(heading);
  add();
  app->option_defaults()->group(before);
}

/// The sizes that all models have; the texts are those of --layers, --inner and --context.
template <class Options>
void addSizeFlags(CLI::App *app, Options &o, const char *layers, const char *inner, const char *context) {
  addBelow(app, "Model", [&] {
    addNumber<int64_t>(app, "--layers", o.layers, layers);
    addNumber<int64_t>(app, "--heads", o.heads, "attention heads; their number divides the width");
    addNumber<int64_t>(app, "--width", o.width, "channels");
    addNumber<int64_t>(app, "--inner", o.inner, inner);
    addNumber<int64_t>(app, "--context", o.context, context);
  });
}

/// --device and --threads.
void addMachineFlags(CLI::App *app, MachineOptions &options);
/// --out, the flags of checkpoints, and those of the machine.
void addRunFlags(CLI::App *app, RunOptions &options);
/// The flags of all settings. --help shows their defaults, which are those of the model of that name.
void addSettingFlags(CLI::App *app, SettingOptions &options, const std::string &model, const TrainSettings &defaults);
/// Adds the flags of some settings, for a command that otherwise uses the run's settings.
void addSettingFlags(CLI::App *app, SettingOptions &options, const std::vector<std::string> &flags);
/// --memory.
void addBudgetFlag(CLI::App *app, std::optional<MemoryBudget> &budget);
/// The flags of the settings that decide the memory of a step, with those defaults.
void addMemoryFlags(CLI::App *app, SettingOptions &options, const std::string &model, const TrainSettings &defaults);

/// The error about a model that is none of `known`, with the new name of a former one, or the nearest name.
Error unknownModel(const std::string &name, const std::vector<std::string> &known);

/// The names of presets, and the preset of that name. Throws Error with all names for another one.
template <class Preset> std::vector<std::string> presetNames(const std::vector<Preset> &all) {
  std::vector<std::string> names;
  for (const Preset &preset : all)
    names.emplace_back(preset.name);
  return names;
}
template <class Preset> const Preset &presetNamed(const std::vector<Preset> &all, const std::string &name) {
  for (const Preset &preset : all)
    if (preset.name == name)
      return preset;
  throw unknownModel(name, presetNames(all));
}

/// Reads the command line of a program without commands. Returns whether there is something to do, which is false after
/// --help and --version. Throws Error for an unknown flag or value, with the nearest one, and for a missing flag.
bool parseFlags(CLI::App &app, int argc, const char *const *argv);
/// The same for a program with commands: which of them the line asks for; null if there is nothing to do.
const CLI::App *parseFlags(CLI::App &app, const std::vector<CLI::App *> &commands, int argc, const char *const *argv);

/// Adds a command and its flags, which set `options`.
template <class Options> using AddCommand = CLI::App *(*)(CLI::App & app, Options &options);

/// Reads the command line of a program: the options of the command that it asks for. Nothing after --help, and after
/// --version, which prints `version`. Throws Error as parseFlags().
template <class... Options>
std::optional<std::variant<Options...>> parseCommands(const std::string &program, const std::string &purpose,
                                                      const std::string &version, int argc, const char *const *argv,
                                                      AddCommand<Options>... add) {
  CLI::App app(purpose, program);
  app.set_version_flag("--version", version, "print the version of Kiln");
  app.option_defaults()->take_last();
  std::tuple<Options...> all;
  const auto addAll = [&](Options &...options) { return std::vector<CLI::App *>{add(app, options)...}; };
  const std::vector<CLI::App *> commands = std::apply(addAll, all);
  const CLI::App *const asked = parseFlags(app, commands, argc, argv);
  std::optional<std::variant<Options...>> result;
  auto command = commands.begin();
  const auto take = [&](auto &options) {
    if (*command++ == asked)
      result = std::move(options);
  };
  std::apply([&](Options &...options) { (take(options), ...); }, all);
  return result;
}

} // namespace kiln
