// llm.c's files: models, training states and debug states.

#pragma once

#include "models/gpt2/config.h"
#include "models/nn/parameters.h"
#include "models/train/checkpoint.h"
#include "runtime/Files.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace kiln::llmc {

//===-- Layout --------------------------------------------------------------------------------------------------===//
// The places of our tensors in llm.c's files (models/gpt2/llmc.h), after a header of 256 numbers. Each kind of a
// block's tensors is stored for all blocks, and matrices as (out, in), where ours are (in, out).

inline constexpr int64_t headerNumbers = 256, headerBytes = headerNumbers * sizeof(int32_t);
using Header = std::array<int32_t, headerNumbers>;
/// Index in a model's header of the number of rows of its token table.
inline constexpr int rowsAt = 7;

/// Reads the header of the file in `path`, which errors call `what`. Throws Error if the file is too short.
Header readHeader(const InputFile &file, const std::string &path, const char *what);

/// One of our tensors in a file.
struct Piece {
  const Parameter *parameter;
  bool isTransposed; // relative to ours, which is (in, out)
  int64_t begin;     // its first number in the file
  int64_t count;     // with zero padding
};

struct FileLayout {
  std::vector<Piece> pieces;
  int64_t count = 0;
};

/// For token and position tables with this many rows in the file. Throws Error for a tensor that llm.c's model lacks.
FileLayout fileLayout(const ParameterList &list, int64_t layers, int64_t rows, int64_t positions);
/// For the model with that header.
FileLayout fileLayout(const Header &header, const ParameterList &list);

/// Transposes (rows, columns) of `from` to (columns, rows).
template <class Number> void transpose(const Number *from, int64_t rows, int64_t columns, Number *to) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      to[c * rows + r] = from[r * columns + c];
}

/// Reads the numbers of `type` from byte `begin` on, as f32 in our layout.
std::vector<float> readAll(const InputFile &file, int64_t begin, Type type, const FileLayout &layout,
                           const ParameterList &list);

} // namespace kiln::llmc

namespace kiln {

//===-- Files ---------------------------------------------------------------------------------------------------===//
// llm.c's files. Each begins with a header of 256 numbers of 32 bits.
//
// The header of a model (20240326; version 3: f32, 5: bf16) has context, vocabulary, layers, heads, width, and the rows
// of its token table. That table is padded with zeros to a multiple of 128 rows. The weights follow, kind by kind in
// the order of the network, each kind for all layers, matrices as (out, in).
//
// The header of a state (20240527, version 1) has the number of processes, the rank, and whether there are master
// weights. The steps are in the 11th number. AdamW's first moments, second moments and the master weights follow, as
// f32 in the layout of the weights.
//
// A debug state (20240327, version 2) has in its header the number of sequences and their length. Tokens and targets
// (i32), logits of every position, the mean loss and its gradient follow, as f32.

/// Throws Error, which names the difference, for a model that llm.c does not support.
void verifyLlmc(const Gpt2Config &config);

/// The config of the model in the file `path`, with the type of its weights. Throws Error for another kind of file, or
/// one of the wrong length.
Gpt2Config readLlmcConfig(const std::string &path);

/// A model in training: weights as f32 (master weights of a narrow model, if present), moments, steps so far.
struct LlmcTraining {
  HostBuffers buffers;
  int64_t steps = 0;
};
/// Reads the weights in the file `model`, laid out as `list`, the parameters of its config, which may have a shorter
/// context. Reads moments and steps from the file `state`, if given. Throws Error for a state of another model, or of
/// several processes.
LlmcTraining readLlmc(const std::string &model, const std::optional<std::string> &state, const Gpt2Config &config,
                      const ParameterList &list);

/// llm.c's debug state: a model's results for a batch.
struct LlmcDebugState {
  int64_t sequences = 0, length = 0;
  std::vector<int32_t> tokens, targets;
  std::vector<float> logits; // (sequences, length, vocab)
  double loss = 0;           // mean
};
/// Reads the debug state in `path` of a model with this config. Throws Error for another file.
LlmcDebugState readLlmcDebugState(const std::string &path, const Gpt2Config &config);
/// Reads its gradient, laid out as `list`, the parameters of the model in the file `model` with a context of `length`.
std::vector<float> readLlmcGradient(const std::string &path, const std::string &model, const ParameterList &list);

/// Writes a model whose weights have `config.type`, f32 or bf16, atomically; `buffers` are f32.
void writeLlmcModel(const std::string &path, const Gpt2Config &config, const ParameterList &list,
                    const HostBuffers &buffers);
/// Writes its state after this many steps, with master weights for bf16.
void writeLlmcState(const std::string &path, const Gpt2Config &config, const ParameterList &list,
                    const HostBuffers &buffers, int64_t steps);

} // namespace kiln
