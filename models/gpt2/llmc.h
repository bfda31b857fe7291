// llm.c's files. Each begins with 256 numbers of 32 bits. A model's (20240326; version 3: f32, 5: bf16) go on with
// context, vocabulary, layers, heads, width, and the rows of its table of tokens, which is filled up with zeros to a
// multiple of 128; then come its weights, kind by kind in the order of the network, each kind for all layers, matrices
// as (out, in). A state's (20240527, version 1) say the processes, the rank, whether there are masters, and in the 11th
// number the steps; then come AdamW's first moments, its second, and the masters, as f32 laid out like the weights. A
// debug state's (20240327, version 2) say sequences and their length; then come tokens and targets (i32), logits of
// every place, the mean loss and its gradient, as f32.

#pragma once

#include "models/gpt2/config.h"
#include "models/nn/parameters.h"
#include "models/train/checkpoint.h"

#include <optional>
#include <string>

namespace kiln {

/// Throws Error, which says what differs, for a model of another form than llm.c's.
void verifyLlmc(const Gpt2Config &config);

/// What the model in the file `path` is, with the type of its weights. Throws Error for another file, or one that is
/// not as long as it says.
Gpt2Config readLlmcConfig(const std::string &path);

/// A model in training: weights as f32 (the masters of a narrow one, where there are), moments, steps taken.
struct LlmcTraining {
  HostBuffers buffers;
  int64_t steps = 0;
};
/// The weights in the file `model`, laid out as `list`, the parameters of its config, which may have a shorter context;
/// moments and steps from the file `state`, or none. Throws Error for a state that is not such a model's, or of several
/// processes.
LlmcTraining readLlmc(const std::string &model, const std::optional<std::string> &state, const Gpt2Config &config,
                      const ParameterList &list);

/// What llm.c's debug state says that a model makes of a batch.
struct LlmcDebugState {
  int64_t sequences = 0, length = 0;
  std::vector<int32_t> tokens, targets;
  std::vector<float> logits; // (sequences, length, vocab)
  double loss = 0;           // mean
};
/// The one in `path` of a model with this config. Throws Error for another file.
LlmcDebugState readLlmcDebugState(const std::string &path, const Gpt2Config &config);
/// The gradient in it, laid out as `list`, the parameters of the model in the file `model` with a context of `length`.
std::vector<float> readLlmcGradient(const std::string &path, const std::string &model, const ParameterList &list);

/// Writes a model whose weights have `config.type`, f32 or bf16, aside and over what was there; `buffers` are f32.
void writeLlmcModel(const std::string &path, const Gpt2Config &config, const ParameterList &list,
                    const HostBuffers &buffers);
/// The same of its state after so many steps, with masters for bf16.
void writeLlmcState(const std::string &path, const Gpt2Config &config, const ParameterList &list,
                    const HostBuffers &buffers, int64_t steps);

} // namespace kiln
