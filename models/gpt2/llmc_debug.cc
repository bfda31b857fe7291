// llm.c's debug states: a batch with its logits and loss, followed by the gradient.

#include "models/gpt2/llmc.h"
#include "models/gpt2/llmc_layout.h"

#include <fmt/format.h>

namespace kiln {

using namespace llmc;

static constexpr int32_t debugMagic = 20240327, debugVersion = 2;

/// The offset of the gradient in bytes.
static int64_t gradientAt(int64_t sequences, int64_t length, int64_t vocab) {
  return headerBytes + 4 * (sequences * length * (2 + vocab) + 1);
}

LlmcDebugState readLlmcDebugState(const std::string &path, const Gpt2Config &config) {
  const InputFile file(path);
  const Header header = readHeader(file, path, "a debug state");
  if (header[0] != debugMagic || header[1] != debugVersion)
    throw Error(fmt::format("expected a debug state of llm.c ({}, version {}) in '{}', but got {}, version {}",
                            debugMagic, debugVersion, path, header[0], header[1]));
  LlmcDebugState state = {header[2], header[3]};
  if (state.sequences < 1 || state.sequences > largestSize || state.length < 1 || state.length > config.context)
    throw Error(fmt::format("expected sequences of 1 to {} tokens in '{}', but got {} of {}", config.context, path,
                            state.sequences, state.length));
  const int64_t places = state.sequences * state.length;
  if (file.size() < gradientAt(state.sequences, state.length, config.vocab))
    throw Error(fmt::format("expected at least {} bytes in '{}', but it has {}",
                            gradientAt(state.sequences, state.length, config.vocab), path, file.size()));
  int64_t at = headerBytes;
  const auto read = [&](auto &to, int64_t count) {
    to.resize(count);
    file.read(at, to.data(), 4 * count);
    at += 4 * count;
  };
  read(state.tokens, places);
  read(state.targets, places);
  read(state.logits, places * config.vocab);
  std::vector<float> loss;
  read(loss, 1);
  state.loss = loss[0];
  for (const int32_t token : state.tokens)
    if (token < 0 || token >= config.vocab)
      throw Error(fmt::format("expected tokens below {} in '{}', but got {}", config.vocab, path, token));
  return state;
}

std::vector<float> readLlmcGradient(const std::string &path, const std::string &model, const ParameterList &list) {
  const InputFile file(path), weights(model);
  const Header header = readHeader(file, path, "a debug state"), sizes = readHeader(weights, model, "a model");
  const FileLayout layout = layoutOf(sizes, list);
  const int64_t begin = gradientAt(header[2], header[3], sizes[3]), bytes = begin + layout.count * bytesOf(f32);
  if (file.size() != bytes)
    throw Error(fmt::format("expected {} bytes in '{}', a debug state of the model in '{}', but it has {}", bytes, path,
                            model, file.size()));
  return readAll(file, begin, f32, layout, list);
}

} // namespace kiln
