// Flags by CLI11.

#include "models/gpt2/options.h"
#include "dialect/dsl/Nearest.h"
#include "runtime/Streams.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <sstream>

namespace kiln {

/// What is wrong with `text` as a T, or nothing.
template <class T> static std::string complaint(const std::string &text) {
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
static CLI::Option *addNumber(CLI::App *app, const std::string &flag, Target &target, const std::string &text) {
  return app->add_option(flag, target, text)->check([flag](const std::string &got) {
    if (const std::string expected = complaint<T>(got); !expected.empty())
      throw Error(fmt::format("expected '{}' to be {}, but got '{}'", flag, expected, got));
    return std::string();
  });
}

static void addMachine(CLI::App *app, MachineOptions &o) {
  app->add_option("--device", o.device, "machine to run on")->capture_default_str();
  addNumber<int>(app, "--threads", o.threads, "threads (0: as many as there are cores, or KILN_THREADS)")
      ->capture_default_str();
}

static void addModel(CLI::App *app, ModelOptions &o) {
  std::string names;
  for (const std::string &name : gpt2Names())
    names += (names.empty() ? "" : ", ") + name;
  app->add_option("--model", o.model, "size by name: " + names + " (nano)");
  addNumber<int64_t>(app, "--layers", o.layers, "transformer blocks");
  addNumber<int64_t>(app, "--heads", o.heads, "attention heads; they divide the width");
  addNumber<int64_t>(app, "--width", o.width, "channels");
  addNumber<int64_t>(app, "--context", o.context, "positions");
  addNumber<int64_t>(app, "--vocab", o.vocab, "tokens (bytes need 256)");
}

static CLI::App *addTrain(CLI::App &app, TrainOptions &o) {
  CLI::App *train = app.add_subcommand("train", "train on the bytes of a text file");
  train->add_option("--data", o.data, "text file; its last tenth validates")->required();
  train->add_option("--out", o.out, "folder for checkpoints and log.jsonl")->required();
  addModel(train, o.model);
  addNumber<int64_t>(train, "--batch", o.batch, "sequences in a micro-batch");
  addNumber<int64_t>(train, "--accumulate", o.accumulate, "micro-batches in a step");
  addNumber<int64_t>(train, "--steps", o.steps, "updates, and the length of the schedule");
  addNumber<int64_t>(train, "--warmup", o.warmup, "steps of linear warm-up");
  addNumber<double>(train, "--lr", o.rate, "highest learning rate");
  addNumber<double>(train, "--final-lr", o.finalRate, "lowest learning rate, as a share of the highest");
  addNumber<double>(train, "--decay", o.decay, "weight decay of matrices");
  addNumber<double>(train, "--beta1", o.beta1, "AdamW's first coefficient");
  addNumber<double>(train, "--beta2", o.beta2, "AdamW's second coefficient");
  addNumber<double>(train, "--clip", o.clip, "largest gradient norm");
  addNumber<int64_t>(train, "--evaluate-every", o.evaluateEvery, "steps between validation losses (0: at the end)");
  addNumber<uint64_t>(train, "--seed", o.seed, "seed of weights and batches");
  addNumber<int64_t>(train, "--save-every", o.saveEvery, "steps between checkpoints (0: at the end)")
      ->capture_default_str();
  addNumber<int64_t>(train, "--stop-after", o.stopAfter, "save and stop after this step (0: go on)")
      ->capture_default_str();
  addNumber<int64_t>(train, "--keep", o.keep, "checkpoints to keep")->capture_default_str();
  train->add_option("--init", o.init,
                    "weights to begin with: a run's folder, a checkpoint, a folder in Hugging Face's layout, or a "
                    "safetensors file, whose sizes the flags give");
  train->add_flag("--resume", o.resume, "go on from the newest checkpoint in --out");
  addNumber<int64_t>(train, "--resume-step", o.resumeStep, "go on from this step's checkpoint; newer ones are removed");
  train->add_flag("--overwrite", o.overwrite, "begin anew where --out holds checkpoints");
  addMachine(train, o.machine);
  return train;
}

static CLI::App *addSample(CLI::App &app, SampleOptions &o) {
  CLI::App *sample = app.add_subcommand("sample", "write text with a trained model");
  sample
      ->add_option("--out,--model-dir", o.folder, "a run's folder, a checkpoint, or a folder in Hugging Face's layout")
      ->required();
  sample->add_option("--prompt", o.prompt, "text to go on from");
  addNumber<int64_t>(sample, "--tokens", o.tokens, "tokens to write")->capture_default_str();
  addNumber<double>(sample, "--temperature", o.temperature, "0: always the likeliest token")->capture_default_str();
  addNumber<int64_t>(sample, "--top-k", o.topK, "choose among the k likeliest (0: all)")->capture_default_str();
  addNumber<uint64_t>(sample, "--seed", o.seed, "seed of the choices")->capture_default_str();
  addMachine(sample, o.machine);
  return sample;
}

static CLI::App *addInfo(CLI::App &app, InfoOptions &o) {
  CLI::App *info = app.add_subcommand("info", "parameters, memory plan and FLOPs of a step");
  addModel(info, o.model);
  addNumber<int64_t>(info, "--batch", o.batch, "sequences in a micro-batch");
  info->add_flag("--buffers", o.buffers, "list every buffer of the memory plan");
  addMachine(info, o.machine);
  return info;
}

/// What other trainers call a flag, with dashes, and what it is called here.
static const std::pair<const char *, const char *> namesElsewhere[] = {
    {"--batch-size", "--batch"},
    {"--micro-batch-size", "--batch"},
    {"--block-size", "--context"},
    {"--checkpoint-interval", "--save-every"},
    {"--context-length", "--context"},
    {"--dataset", "--data"},
    {"--eval-every", "--evaluate-every"},
    {"--eval-interval", "--evaluate-every"},
    {"--grad-clip", "--clip"},
    {"--gradient-accumulation-steps", "--accumulate"},
    {"--init-from", "--init"},
    {"--learning-rate", "--lr"},
    {"--max-iters", "--steps"},
    {"--max-new-tokens", "--tokens"},
    {"--max-steps", "--steps"},
    {"--min-lr", "--final-lr"},
    {"--n-embd", "--width"},
    {"--n-head", "--heads"},
    {"--n-layer", "--layers"},
    {"--num-steps", "--steps"},
    {"--out-dir", "--out"},
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
};

/// The end of a message about an unknown `word`: what other trainers mean by it, or the nearest of `known`.
static std::string hintFor(std::string word, const std::vector<std::string> &known) {
  std::replace(word.begin(), word.end(), '_', '-');
  for (const auto &[elsewhere, here] : namesElsewhere)
    if (word == elsewhere && std::find(known.begin(), known.end(), here) != known.end())
      return fmt::format("; did you mean '{}'?", here);
  const std::string hint = didYouMean(word, known);
  return hint.empty() ? "; see --help" : hint;
}

/// Throws for the first word that no option or command took.
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
  throw Error(fmt::format("unknown {} '{}'{}",
                          flag            ? "flag"
                          : known.empty() ? "argument"
                                          : "command",
                          word, hintFor(word, known)));
}

/// Says what the library found wrong with a command's flags.
[[noreturn]] static void reject(const CLI::App &command, const CLI::ParseError &error) {
  if (dynamic_cast<const CLI::RequiredError *>(&error)) {
    rejectExtras(command, command.remaining()); // a misspelt flag is the likelier cause
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

std::optional<Command> parseCommand(int argc, const char *const *argv) {
  CLI::App app("GPT-2, trained by kernels written in Kiln's tile language", "gpt2");
  TrainOptions train;
  SampleOptions sample;
  InfoOptions info;
  app.option_defaults()->take_last();
  CLI::App *commands[] = {addTrain(app, train), addSample(app, sample), addInfo(app, info)};
  app.allow_extras();
  for (CLI::App *command : commands)
    command->allow_extras();
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp &help) {
    std::ostringstream text;
    app.exit(help, text, text);
    writeResult(text.str());
    return {};
  } catch (const CLI::ParseError &error) {
    for (const CLI::App *command : commands)
      if (command->parsed())
        reject(*command, error);
    throw Error(error.what());
  }
  for (const CLI::App *command : commands)
    if (command->parsed())
      rejectExtras(*command, command->remaining());
  rejectExtras(app, app.remaining());
  train.resume = train.resume || train.resumeStep;
  if (commands[0]->parsed())
    return train;
  if (commands[1]->parsed())
    return sample;
  if (commands[2]->parsed())
    return info;
  throw Error("expected a command out of train, sample, info; see --help");
}

std::string nameOf(const ModelOptions &options) { return options.model.value_or("nano"); }

Gpt2Config modelOf(const ModelOptions &options, const std::optional<Gpt2Config> &base) {
  const Gpt2Config named = gpt2Named(nameOf(options)).config;
  Gpt2Config config = base.value_or(named);
  if (options.model) {
    config.layers = named.layers;
    config.heads = named.heads;
    config.width = named.width;
    config.context = named.context;
  }
  config.layers = options.layers.value_or(config.layers);
  config.heads = options.heads.value_or(config.heads);
  config.width = options.width.value_or(config.width);
  config.context = options.context.value_or(config.context);
  config.vocab = options.vocab.value_or(config.vocab);
  verify(config);
  return config;
}

TrainSettings settingsOf(const TrainOptions &o, const std::optional<TrainSettings> &base) {
  TrainSettings s = base ? *base : gpt2Named(nameOf(o.model)).settings;
  s.batch = o.batch.value_or(s.batch);
  s.accumulate = o.accumulate.value_or(s.accumulate);
  s.steps = o.steps.value_or(s.steps);
  s.warmup = o.warmup.value_or(base ? s.warmup : std::min(s.warmup, s.steps / 10));
  s.rate = o.rate.value_or(s.rate);
  s.finalRate = o.finalRate.value_or(s.finalRate);
  s.decay = o.decay.value_or(s.decay);
  s.beta1 = o.beta1.value_or(s.beta1);
  s.beta2 = o.beta2.value_or(s.beta2);
  s.clip = o.clip.value_or(s.clip);
  s.evaluateEvery = o.evaluateEvery.value_or(s.evaluateEvery);
  s.seed = o.seed.value_or(s.seed);
  verify(s);
  return s;
}

} // namespace kiln
