// Texts that a trained model writes for a reader: what `sample` does, whatever the model.

#pragma once

#include "models/generate/generator.h"
#include "models/generate/writing_options.h"

namespace kiln {

/// What tokens are.
struct TextForm {
  std::function<std::vector<int32_t>(const std::string &)> encode;
  std::function<std::string(std::span<const int32_t>)> decode;
  int64_t size = 0;               // logits from there on are padding
  std::vector<int32_t> ends = {}; // each ends a text
  bool beginsAlone = false;       // a prompt may be empty
};

/// Writes the prompt and what the model goes on with to standard output: one text as it grows, by whole characters;
/// several one after the other when all are there, with a line of dashes behind each. What is chosen depends on the
/// seed, the number of the text and the place in it alone. `program` is named in messages. Throws Error.
void write(const std::string &program, const std::function<Generator(Generator::Options)> &make, const TextForm &form,
           const WritingOptions &options);

} // namespace kiln
