// The `sample` command, for any model: its options, and texts of a trained model, streamed to a reader.

#pragma once

#include "models/generate/generator.h"
#include "models/generate/sampling.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace kiln {

//===-- Options -------------------------------------------------------------------------------------------------===//

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

//===-- Streamed text -------------------------------------------------------------------------------------------===//
// Streams text to a reader: whole UTF-8 characters, and no part of a stop text.

class TextStream {
public:
  /// Ends the text before the first stop that occurs in it. No stop is empty.
  explicit TextStream(std::vector<std::string> stops = {}) : stops(std::move(stops)) {}

  /// Takes the next bytes, and returns those that can be shown now. Bytes that may become a stop, or that begin a
  /// character, are held back. Bytes that are not UTF-8 pass unchanged.
  std::string push(std::string_view bytes);
  /// The bytes still held back, at the end of the text.
  std::string finish();
  /// Whether a stop has occurred; the rest is discarded.
  bool isStopped() const { return stopped; }

private:
  /// Number of bytes at the end that must still be held back.
  size_t held() const;

  std::vector<std::string> stops;
  std::string waiting;
  bool stopped = false;
};

//===-- The command ---------------------------------------------------------------------------------------------===//

/// The tokens of a model.
struct TextForm {
  std::function<std::vector<int32_t>(const std::string &)> encode;
  std::function<std::string(std::span<const int32_t>)> decode;
  int64_t size = 0;               // logits from here on are padding
  std::vector<int32_t> ends = {}; // each ends a text
  bool beginsAlone = false;       // the prompt may be empty
};

/// Writes the prompt and its continuation to standard output. One text is streamed by whole characters. Several are
/// written one after the other when all are complete, each followed by a line of dashes. Seed, number of the text and
/// position determine each draw. `program` is named in messages. Throws Error.
void write(const std::string &program, const std::function<Generator(Generator::Options)> &make, const TextForm &form,
           const GenerationOptions &options);

} // namespace kiln
