// The `sample` command, for any model: writes texts of a trained model for a reader.

#pragma once

#include "models/generate/generation_options.h"
#include "models/generate/generator.h"

namespace kiln {

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
