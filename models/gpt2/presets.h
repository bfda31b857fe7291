// Presets: models by name, with training settings.

#pragma once

#include "models/gpt2/config.h"
#include "models/train/settings.h"

namespace kiln {

/// A preset.
struct NamedGpt2 {
  Gpt2Config config;
  TrainSettings settings;
};
/// The preset `nano`; `d2` … `d48` by depth (d12, d24, d36 and d48 are OpenAI's four sizes); `llmc-124m`, d12 with
/// llm.c's settings; `annotated`, `mlp-first` and their `-small` forms, GPT-2 variants. Throws Error with all names for
/// another one.
NamedGpt2 gpt2Named(const std::string &name);
/// The name of the preset among nano … d48 with the nearest number of parameters, by ratio.
std::string nearestGpt2(const Gpt2Config &config);
/// All names of presets.
std::vector<std::string> gpt2Names();

} // namespace kiln
