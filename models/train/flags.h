// Flags that every trainer has, by CLI11, and what it says to flags that it does not have.

#pragma once

#include "models/train/number_text.h"
#include "models/train/options.h"

#include <CLI/CLI.hpp>

namespace kiln {

/// A flag with a number of type T; text that is none is told in our words.
template <class T, class Target>
CLI::Option *addNumber(CLI::App *app, const std::string &flag, Target &target, const std::string &text) {
  return app->add_option(flag, target, text)->check([flag](const std::string &got) {
    numberIn<T>(flag, got);
    return std::string();
  });
}

/// --device and --threads.
void addMachineFlags(CLI::App *app, MachineOptions &options);
/// --out and all about the checkpoints in it, and the machine's.
void addRunFlags(CLI::App *app, RunOptions &options);
/// The flags of all settings.
void addSettingFlags(CLI::App *app, SettingOptions &options);
/// Those of some, for a command that takes them from a run unless they are given.
void addSettingFlags(CLI::App *app, SettingOptions &options, const std::vector<std::string> &flags);
/// --memory.
void addBudgetFlag(CLI::App *app, std::optional<MemoryBudget> &budget);
/// Those of the settings that decide how much memory a step takes.
void addMemoryFlags(CLI::App *app, SettingOptions &options);

/// Reads the command line; whether there is something to do, after --help and --version there is not. Throws Error for
/// a flag, a command or a value that is not known, with the nearest one, and for a flag that is missing.
bool parseFlags(CLI::App &app, const std::vector<CLI::App *> &commands, int argc, const char *const *argv);

} // namespace kiln
