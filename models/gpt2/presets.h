// Models by name, with settings that train them.

#pragma once

#include "models/gpt2/config.h"
#include "models/train/settings.h"

namespace kiln {

/// A model with a name, and settings that train it reasonably.
struct NamedGpt2 {
  Gpt2Config config;
  TrainSettings settings;
};
/// `nano`; `d2` … `d48` by depth (d12, d24, d36 and d48 are OpenAI's four); `llmc-124m`, which is d12 as llm.c trains
/// it; `seed001`, `seed004` and the same `-small`, whose layers are not Hugging Face's. Throws Error with the names
/// there are.
NamedGpt2 gpt2Named(const std::string &name);
/// The name of that of nano … d48 whose number of parameters is nearest, by ratio.
std::string nearestGpt2(const Gpt2Config &config);
/// All names that gpt2Named knows.
std::vector<std::string> gpt2Names();

} // namespace kiln
