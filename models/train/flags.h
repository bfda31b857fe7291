// Flags that every trainer has, by CLI11, and what it says to flags that it does not have.

#pragma once

#include "dialect/dsl/Types.h"
#include "models/train/options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <fmt/format.h>

namespace kiln {

/// What is wrong with `text` as a T, or nothing.
template <class T> std::string complaint(const std::string &text) {
  T value{};
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (stop != text.data() + text.size() || failure == std::errc::invalid_argument)
    return std::is_floating_point_v<T> ? "a number" : std::is_signed_v<T> ? "a whole number" : "a whole number from 0";
  if constexpr (std::is_floating_point_v<T>)
    return failure == std::errc() && std::isfinite(value) ? "" : "a finite number";
  else
    return failure == std::errc() ? "" : fmt::format("a whole number that fits into {} bits", 8 * sizeof(T));
}

/// A flag with a number of type T; text that is none is told in our words.
template <class T, class Target>
CLI::Option *addNumber(CLI::App *app, const std::string &flag, Target &target, const std::string &text) {
  return app->add_option(flag, target, text)->check([flag](const std::string &got) {
    if (const std::string expected = complaint<T>(got); !expected.empty())
      throw Error(fmt::format("expected '{}' to be {}, but got '{}'", flag, expected, got));
    return std::string();
  });
}

/// --device and --threads.
void addMachineFlags(CLI::App *app, MachineOptions &options);
/// --out and all about the checkpoints in it, and the machine's.
void addRunFlags(CLI::App *app, RunOptions &options);
/// --dtype.
void addDtypeFlag(CLI::App *app, std::optional<std::string> &dtype);
/// The flags of the settings that decide how much memory a step takes.
void addPlanFlags(CLI::App *app, SettingOptions &options);
/// Batches, schedule, optimiser, types and seed.
void addSettingFlags(CLI::App *app, SettingOptions &options);

/// Reads the command line; whether there is something to do, after --help and --version there is not. Throws Error for
/// a flag, a command or a value that is not known, with the nearest one, and for a flag that is missing.
bool parseFlags(CLI::App &app, const std::vector<CLI::App *> &commands, int argc, const char *const *argv);

} // namespace kiln
