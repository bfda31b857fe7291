// A decoder-only language model as layers: embeddings, causal blocks, a final norm or none, and a head. Options express
// the differences between GPT-2 and its relatives. All have equal launches for a training micro-batch, an evaluation
// and a prediction.

#pragma once

#include "models/nn/block.h"
#include "models/nn/embedding.h"
#include "models/nn/head.h"
#include "models/train/model.h"

namespace kiln {

/// Names of all parameters.
struct DecoderNames {
  EmbeddingNames tables;
  std::function<BlockNames(int64_t)> block; // of each block, counted from 0
  LayerNames last, head;
};

struct DecoderOptions {
  int64_t layers = 0, width = 0, context = 0, vocab = 0;
  BlockOptions block = {};
  std::function<double(int64_t)> scaleOf = {}; // scale of attention scores in each block; default 1/√(width/heads)
  EmbeddingOptions embedding = {};
  bool lastNorm = true; // final norm, with the options of block.norm
  /// The batch gives visible ranges (`ranges`, `column ranges`); otherwise attention is causal.
  bool givesRanges = false;
  double smoothing = 0; // label smoothing in the training loss (kernels/cross_entropy.h)
  HeadOptions head = {};
  LinearInit headInit = {{Init::Kind::normal, 0.02}}; // of an untied head
  Inits inits = {};
  DropoutOptions dropout = {};
};

/// The blocks of a model with these options.
std::vector<Block> makeBlocks(ParameterList &list, const DecoderNames &names, const DecoderOptions &options);

class Decoder {
public:
  /// Adds its parameters to the list, in the order: tables, blocks, final norm, head.
  Decoder(ParameterList &list, const DecoderNames &names, const DecoderOptions &options);

  const DecoderOptions &options() const { return sizes; }
  /// Tokens and targets (N) with N = sequences · length, and further inputs of the embeddings.
  std::vector<Input> inputs(const BatchShape &shape) const;
  void derive(HostBatch &batch) const { embedding.derive(batch); }
  /// Recomputes activations as the build's policy says. With several loss chunks it has the logits of one chunk in
  /// memory at a time; gradients are then sums over the chunks.
  void gradient(Build &build, const MicroBatch &batch) const;
  /// Targets below 0 are ignored.
  void losses(Build &build, const MicroBatch &batch) const;

  /// The last block's output (N, width), taken from the arena, for whole sequences of `time` positions. `inputs` has
  /// the tokens (N), and positions and ranges if the batch gives them.
  TensorRef hidden(Build &build, const Embedding::Inputs &inputs, int64_t rows, int64_t time) const;
  /// hidden() for new positions of B sequences (incremental decoding): `tokens` and `positions` (B · n) i32, where −1
  /// adds nothing, and a KV cache for each block. Blocks with cross-attention also take their keys and values of the
  /// encoder memory.
  TensorRef extend(Build &build, const TensorRef &tokens, const TensorRef &positions,
                   const std::vector<KvCache> &caches, const std::vector<CrossKvCache> &crossCaches = {}) const;
  /// Computes the last argument of extend() for each block with cross-attention, from the build's encoder memory.
  void remember(Build &build, const std::vector<CrossKvCache> &crossCaches) const;
  /// Logits (N, vocab) of rows of hidden() or extend().
  void logits(Build &build, const TensorRef &rows, const TensorRef &logits) const;
  int tokenTable() const { return embedding.tokenTable(); }

private:
  DecoderOptions sizes;
  Embedding embedding;
  std::vector<Block> blocks;
  std::optional<LayerNorm> last;
  Head projection;
};

} // namespace kiln
