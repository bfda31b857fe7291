// The flags, and the loop.

#include "models/generate/sampling.h"
#include "models/data/random.h"
#include "models/generate/choose.h"
#include "models/train/flags.h"

#include <fmt/format.h>

namespace kiln {

void addSamplingFlags(CLI::App *app, SamplingOptions &o, const std::string &unit) {
  addNumber<int64_t>(app, "--" + unit + "s", o.count, unit + "s to write")->capture_default_str();
  addNumber<double>(app, "--temperature", o.temperature, "0: always the likeliest " + unit)->capture_default_str();
  addNumber<int64_t>(app, "--top-k", o.topK, "choose among the k likeliest (0: all)")->capture_default_str();
  addNumber<uint64_t>(app, "--seed", o.seed, "seed of the choices")->capture_default_str();
}

void verify(const SamplingOptions &o, const std::string &unit) {
  if (o.count < 1)
    throw Error(fmt::format("expected '{}s' to be at least 1, but got {}", unit, o.count));
  if (!(o.temperature >= 0))
    throw Error(fmt::format("expected 'temperature' to be at least 0, but got {}", o.temperature));
  if (o.topK < 0)
    throw Error(fmt::format("expected 'top-k' to be at least 0, but got {}", o.topK));
}

void goOn(const SamplingOptions &o, std::vector<int32_t> tokens,
          const std::function<std::vector<float>(const std::vector<int32_t> &)> &logitsAfter,
          const std::function<void(int32_t)> &show) {
  const Random random(o.seed, Stream::sampling);
  for (int64_t i = 0; i < o.count; ++i) {
    tokens.push_back(static_cast<int32_t>(choose(logitsAfter(tokens), o.temperature, o.topK, random.uniform(i))));
    show(tokens.back());
  }
}

} // namespace kiln
