// What a user may say about the texts that a model writes.

#pragma once

#include "models/generate/choice.h"

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace kiln {

struct WritingOptions {
  std::optional<std::string> prompt;     // text to go on from
  std::optional<std::string> promptFile; // a file with it; `-`: standard input
  int64_t tokens = 256;                  // to write, at most
  int64_t texts = 1;                     // how many, from one prompt
  Choice choice = {};
  uint64_t seed = 1;
  std::vector<std::string> stops = {}; // a text ends in front of the first of these
  bool speed = false;                  // say how fast it was
};

/// The flags of all of them; `unit` is what one token is called: `token`, `byte`; `without` is
/// what happens without a prompt.
void addWritingFlags(CLI::App *app, WritingOptions &options, const std::string &unit, const std::string &without);
/// Throws Error for what makes no sense.
void verify(const WritingOptions &options);

} // namespace kiln
