// Options of `sample`.

#pragma once

#include "models/generate/sampling.h"

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace kiln {

struct GenerationOptions {
  std::optional<std::string> prompt;     // text to continue
  std::optional<std::string> promptFile; // a file with it; `-`: standard input
  int64_t tokens = 256;                  // tokens to generate, at most
  int64_t texts = 1;                     // number of texts from one prompt
  SamplingParams sampling = {};
  uint64_t seed = 1;
  std::vector<std::string> stops = {}; // each ends the text before it
  bool speed = false;                  // prints the speed
};

/// Adds the flags. `unit` is the name of a token in the help: `token`, `byte`. `without` describes the default prompt.
void addGenerationFlags(CLI::App *app, GenerationOptions &options, const std::string &unit, const std::string &without);
/// Throws Error for options that contradict each other or are out of range.
void verify(const GenerationOptions &options);

} // namespace kiln
