// The flags, and messages for CLI11's errors.

#include "models/train/flags.h"
#include "dialect/dsl/Nearest.h"
#include "models/train/setting_table.h"
#include "models/train/settings.h"
#include "runtime/Streams.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <sstream>

namespace kiln {

void addMachineFlags(CLI::App *app, MachineOptions &o) {
  addBelow(app, "Device", [&] {
    app->add_option("--device", o.device, fmt::format("device: {}", fmt::join(Device::names(), ", ")))
        ->capture_default_str();
    addNumber<int>(app, "--threads", o.threads, "CPU threads (0: all cores, or KILN_THREADS)")->capture_default_str();
  });
}

/// Flags of logging and profiling.
static void addLookFlags(CLI::App *app, RunOptions &o) {
  app->add_option_function<std::string>(
         "--profile", [&](const std::string &text) { o.profile = stepRangeNamed("--profile", text); },
         "times the launches of steps A to B (or of A), prints time by kernel, and writes a trace to --trace")
      ->type_name("A:B");
  app->add_option("--trace", o.trace, "file for the trace of --profile, for Perfetto (trace-A-B.json in --out)");
  app->add_option("--tensorboard", o.tensorboard, "folder for TensorBoard events");
  app->add_flag("--main-log", o.mainLog, "also write llm.c's main.log in --out");
  app->add_flag("--curve", o.curve, "draw the losses so far below the progress bar");
}

void addRunFlags(CLI::App *app, RunOptions &o) {
  app->add_option("--out", o.out, "folder for checkpoints and log.jsonl")->required();
  addNumber<int64_t>(app, "--stop-after", o.stopAfter, "save and stop after this step (0: never)")
      ->capture_default_str();
  app->add_flag("--resume", o.resume, "continue from the newest checkpoint in --out");
  addNumber<int64_t>(app, "--resume-step", o.resumeStep,
                     "continue from the checkpoint of this step; newer ones are removed")
      ->each([&o](const std::string &) { o.resume = true; });
  app->add_flag("--overwrite", o.overwrite, "start a new run even if --out has checkpoints");
  addBudgetFlag(app, o.memory);
  addBelow(app, "Logs and profiles", [&] { addLookFlags(app, o); });
  addMachineFlags(app, o.machine);
}

void addBudgetFlag(CLI::App *app, std::optional<MemoryBudget> &budget) {
  app->add_option_function<std::string>(
         "--memory", [&](const std::string &text) { budget = budgetNamed("--memory", text); },
         "memory budget, such as 6GiB, or auto (nine tenths of the free memory); chooses --recompute and --loss-chunks")
      ->type_name("SIZE")
      ->group("Memory");
}

/// The flag of a setting. Its text is parsed at once, so that errors name the flag.
static CLI::Option *addSettingFlag(CLI::App *app, const Setting &setting, SettingOptions &o) {
  return app
      ->add_option_function<std::string>(
          "--" + setting.flag,
          [&](const std::string &text) {
            TrainSettings any;
            setting.take(any, text);
            o.given[setting.flag] = text;
          },
          setting.help)
      ->type_name(setting.kind)
      ->group(setting.heading);
}

/// The same for the settings that `isWanted`, with their defaults.
static void addWithDefaults(CLI::App *app, SettingOptions &o, const std::string &model, const TrainSettings &defaults,
                            bool (*isWanted)(const Setting &)) {
  for (const Setting &setting : settingTable()) {
    if (!isWanted(setting))
      continue;
    const nlohmann::ordered_json value = setting.json(defaults);
    const std::string text = value.is_null()      ? ""
                             : value.is_string()  ? value.get<std::string>()
                             : value.is_boolean() ? (value.get<bool>() ? "1" : "0")
                                                  : fmt::format("{}", value.get<double>());
    addSettingFlag(app, setting, o)->default_str(text);
  }
  app->footer(fmt::format("The defaults of settings are those of --model {}. Other models have their own.", model));
}

void addSettingFlags(CLI::App *app, SettingOptions &o, const std::string &model, const TrainSettings &defaults) {
  addWithDefaults(app, o, model, defaults, [](const Setting &) { return true; });
}

void addSettingFlags(CLI::App *app, SettingOptions &o, const std::vector<std::string> &flags) {
  for (const Setting &setting : settingTable())
    if (std::find(flags.begin(), flags.end(), setting.flag) != flags.end())
      addSettingFlag(app, setting, o);
}

void addMemoryFlags(CLI::App *app, SettingOptions &o, const std::string &model, const TrainSettings &defaults) {
  addWithDefaults(app, o, model, defaults, [](const Setting &setting) { return setting.decidesMemory; });
}

/// Flags of other trainers, with dashes, former flags and former names of models, and their names here.
static const std::pair<const char *, const char *> namesElsewhere[] = {
    {"--batch-size", "--batch"},
    {"--bf16", "--dtype"},
    {"--block-size", "--context"},
    {"--checkpoint-interval", "--save-every"},
    {"--context-length", "--context"},
    {"--dataset", "--data"},
    {"--epochs", "--steps"},
    {"--eval-every", "--evaluate-every"},
    {"--eval-interval", "--evaluate-every"},
    {"--evaluate-batches", "--evaluate-sequences"},
    {"--fp16", "--dtype"},
    {"--grad-clip", "--clip"},
    {"--gradient-accumulation-steps", "--accumulate"},
    {"--group-norms", "--gradient-norms"},
    {"--init-from", "--init"},
    {"--init-scale", "--loss-scale"},
    {"--learning-rate", "--lr"},
    {"--max-eval-samples", "--evaluate-sequences"},
    {"--max-iters", "--steps"},
    {"--max-new-tokens", "--tokens"},
    {"--max-steps", "--steps"},
    {"--micro-batch-size", "--batch"},
    {"--min-lr", "--final-lr"},
    {"--mixed-precision", "--dtype"},
    {"--n-embd", "--width"},
    {"--n-head", "--heads"},
    {"--n-layer", "--layers"},
    {"--num-epochs", "--steps"},
    {"--num-steps", "--steps"},
    {"--num-train-epochs", "--steps"},
    {"--out-dir", "--out"},
    {"--output", "--out"},
    {"--output-dir", "--out"},
    {"--save-interval", "--save-every"},
    {"--seq-len", "--context"},
    {"--sequence-length", "--context"},
    {"--start", "--prompt"},
    {"--train-data", "--data"},
    {"--vocab-size", "--vocab"},
    {"--warmup-iters", "--warmup"},
    {"--warmup-steps", "--warmup"},
    {"--weight-decay", "--decay"},
    {"evaluate", "eval"},
    {"generate", "sample"},
    {"gpt2", "d12"},
    {"gpt2-large", "d36"},
    {"gpt2-medium", "d24"},
    {"gpt2-xl", "d48"},
    {"large", "d36"},
    {"medium", "d24"},
    {"seed000", "base"},
    {"seed001", "annotated"},
    {"seed001-small", "annotated-small"},
    {"seed002", "annotated"},
    {"seed004", "mlp-first"},
    {"seed004-small", "mlp-first-small"},
    {"small", "d12"},
    {"xl", "d48"},
};

/// The end of an error about an unknown `word`. It has Kiln's name for a flag of another trainer or for a former name,
/// or the nearest of `known`. Empty without one.
static std::string hintFor(std::string word, const std::vector<std::string> &known) {
  std::replace(word.begin(), word.end(), '_', '-');
  for (const auto &[elsewhere, here] : namesElsewhere)
    if (word == elsewhere && std::find(known.begin(), known.end(), here) != known.end())
      return fmt::format("; did you mean '{}'?", here);
  return didYouMean(word, known);
}

Error unknownModel(const std::string &name, const std::vector<std::string> &known) {
  return Error(unknownName("model", name, known, hintFor(name, known)));
}

/// Throws for the first word that is neither an option nor a command.
static void rejectExtras(const CLI::App &app, const std::vector<std::string> &extras) {
  if (extras.empty())
    return;
  const std::string word = extras.front().substr(0, extras.front().find('='));
  std::vector<std::string> known;
  const bool flag = word.rfind("-", 0) == 0;
  if (flag) {
    for (const CLI::Option *option : app.get_options())
      for (const std::string &name : option->get_lnames())
        known.push_back("--" + name);
  } else {
    for (const CLI::App *command : app.get_subcommands([](const CLI::App *) { return true; }))
      known.push_back(command->get_name());
  }
  const std::string hint = hintFor(word, known);
  throw Error(fmt::format("unknown {} '{}'{}",
                          flag            ? "flag"
                          : known.empty() ? "argument"
                                          : "command",
                          word, hint.empty() ? "; see --help" : hint));
}

/// Translates the library's error about a command's flags.
[[noreturn]] static void reject(const CLI::App &command, const CLI::ParseError &error) {
  if (dynamic_cast<const CLI::RequiredError *>(&error)) {
    rejectExtras(command, command.remaining()); // a misspelt flag is the more likely cause
    for (const CLI::Option *option : command.get_options())
      if (option->get_required() && option->count() == 0)
        throw Error(fmt::format("expected the flag '{}', but it is missing ({})", option->get_name(),
                                option->get_description()));
  }
  const std::string text = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch *>(&error)) // "--flag: …"
    throw Error(fmt::format("expected a value after '{}', but there is none", text.substr(0, text.find(':'))));
  throw Error(text);
}

bool parseFlags(CLI::App &app, int argc, const char *const *argv) {
  app.allow_extras();
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &asked) {
    std::ostringstream text;
    app.exit(asked, text, text);
    writeResult(text.str());
    return false;
  } catch (const CLI::ParseError &error) {
    for (const CLI::App *command : app.get_subcommands())
      reject(*command, error);
    throw Error(error.what());
  }
  for (const CLI::App *command : app.get_subcommands())
    rejectExtras(*command, command->remaining());
  rejectExtras(app, app.remaining());
  return true;
}

const CLI::App *parseFlags(CLI::App &app, const std::vector<CLI::App *> &commands, int argc, const char *const *argv) {
  std::vector<std::string> names;
  for (CLI::App *command : commands) {
    command->allow_extras();
    names.push_back(command->get_name());
  }
  if (!parseFlags(app, argc, argv))
    return nullptr;
  for (const CLI::App *command : commands)
    if (command->parsed())
      return command;
  throw Error(fmt::format("expected a command out of {}; see --help", fmt::join(names, ", ")));
}

} // namespace kiln
