// Flags that all trainers have, by CLI11, and hints for unknown ones.

#pragma once

#include "models/train/number_text.h"
#include "models/train/options.h"

#include <CLI/CLI.hpp>

namespace kiln {

/// Adds a flag with a number of type T, with our message for a text that is not one.
template <class T, class Target>
CLI::Option *addNumber(CLI::App *app, const std::string &flag, Target &target, const std::string &text) {
  return app->add_option(flag, target, text)->check([flag](const std::string &got) {
    numberIn<T>(flag, got);
    return std::string();
  });
}

/// --device and --threads.
void addMachineFlags(CLI::App *app, MachineOptions &options);
/// --out, the flags of checkpoints, and those of the machine.
void addRunFlags(CLI::App *app, RunOptions &options);
/// The flags of all settings.
void addSettingFlags(CLI::App *app, SettingOptions &options);
/// Adds the flags of some settings, for a command that otherwise uses the run's settings.
void addSettingFlags(CLI::App *app, SettingOptions &options, const std::vector<std::string> &flags);
/// --memory.
void addBudgetFlag(CLI::App *app, std::optional<MemoryBudget> &budget);
/// The flags of the settings that decide the memory of a step.
void addMemoryFlags(CLI::App *app, SettingOptions &options);

/// The error about a model that is none of `known`, with the new name of a former one, or the nearest name.
Error unknownModel(const std::string &name, const std::vector<std::string> &known);

/// Reads the command line. Returns whether there is something to do, which is false after --help and --version. Throws
/// Error for an unknown flag, command or value, with the nearest one, and for a missing flag.
bool parseFlags(CLI::App &app, const std::vector<CLI::App *> &commands, int argc, const char *const *argv);

} // namespace kiln
