// The flags of text generation, for CLI11.

#include "models/generate/generation_options.h"
#include "models/train/flags.h"

#include <algorithm>
#include <fmt/format.h>

namespace kiln {

void addGenerationFlags(CLI::App *app, GenerationOptions &o, const std::string &unit, const std::string &without) {
  app->add_option("--prompt", o.prompt, "text to continue (" + without + ")");
  app->add_option("--prompt-file", o.promptFile, "file with the text to continue; '-' is standard input");
  addNumber<int64_t>(app, "--" + unit + "s", o.tokens, unit + "s to write, at most")->capture_default_str();
  addNumber<int64_t>(app, "--num", o.texts, "texts to generate, as one batch")->capture_default_str();
  addNumber<double>(app, "--temperature", o.sampling.temperature, "0: always the likeliest " + unit)
      ->capture_default_str();
  addNumber<int64_t>(app, "--top-k", o.sampling.topK, "choose among the k most likely (0: all)")->capture_default_str();
  addNumber<double>(app, "--top-p", o.sampling.topP, "choose among the most likely, whose probabilities add up to this")
      ->capture_default_str();
  addNumber<double>(app, "--min-p", o.sampling.minP,
                    "choose among those with at least this share of the highest probability")
      ->capture_default_str();
  addNumber<double>(app, "--repetition-penalty", o.sampling.repetitionPenalty,
                    "divides the logits of tokens that the text has already (1: none)")
      ->capture_default_str();
  app->add_option("--stop", o.stops, "end before this text, which is not printed; may be given several times")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  addNumber<uint64_t>(app, "--seed", o.seed, "seed of the draws")->capture_default_str();
  app->add_flag("--speed", o.speed, "print the speed on standard error");
}

void verify(const GenerationOptions &o) {
  if (o.tokens < 1)
    throw Error(fmt::format("expected '--tokens' to be at least 1, but got {}", o.tokens));
  if (o.texts < 1)
    throw Error(fmt::format("expected '--num' to be at least 1, but got {}", o.texts));
  if (o.prompt && o.promptFile)
    throw Error("--prompt and --prompt-file exclude each other");
  if (std::any_of(o.stops.begin(), o.stops.end(), [](const std::string &stop) { return stop.empty(); }))
    throw Error("expected '--stop' to be a text of at least one byte, but got an empty one");
  verify(o.sampling);
}

} // namespace kiln
