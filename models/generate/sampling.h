// What a model goes on with, a token at a time, and what a user may say about it.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace kiln {

struct SamplingOptions {
  int64_t count = 256; // tokens to write
  double temperature = 0.8;
  int64_t topK = 0; // 0: all
  uint64_t seed = 1;
};

/// The flags of these; one of the tokens is called `unit`: `token`, `byte`.
void addSamplingFlags(CLI::App *app, SamplingOptions &options, const std::string &unit);
/// Throws Error for an option out of its range.
void verify(const SamplingOptions &options, const std::string &unit);

/// Draws so many tokens behind `tokens`, each from the logits of what follows all before it, and shows each as it
/// comes.
void goOn(const SamplingOptions &options, std::vector<int32_t> tokens,
          const std::function<std::vector<float>(const std::vector<int32_t> &)> &logitsAfter,
          const std::function<void(int32_t)> &show);

} // namespace kiln
