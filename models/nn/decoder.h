// A language model as layers: embeddings, blocks whose places see those before them, a norm or none, and a head. What
// GPT-2 and its relatives differ in are the options; the launches of a training micro-batch, of an evaluation and of a
// prediction are the same for all.

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
  std::function<double(int64_t)> scaleOf = {}; // of attention's scores in each block; 1/√(width/heads) without
  EmbeddingOptions embedding = {};
  bool lastNorm = true; // as block.norm says
  /// A batch says which places each one sees (`ranges`, `column ranges`); else those up to its own.
  bool givesRanges = false;
  double smoothing = 0; // of labels, in the loss to train by (kernels/cross_entropy.h)
  HeadOptions head = {};
  LinearInit headInit = {{Init::Kind::normal, 0.02}}; // of one that is not tied
  Inits inits = {};
  DropoutOptions dropout = {};
};

/// The blocks of a model of these options.
std::vector<Block> makeBlocks(ParameterList &list, const DecoderNames &names, const DecoderOptions &options);

class Decoder {
public:
  /// Adds its parameters to the list, in the order: tables, blocks, last norm, head.
  Decoder(ParameterList &list, const DecoderNames &names, const DecoderOptions &options);

  const DecoderOptions &options() const { return sizes; }
  /// Tokens and targets (N) of N = sequences · length, and what embeddings take beside them.
  std::vector<Input> inputs(const BatchShape &shape) const;
  void derive(HostBatch &batch) const { embedding.derive(batch); }
  /// Makes again what the build's policy says, and has the logits of some of the rows at a time in memory where it asks
  /// for several chunks: then gradients are sums over these.
  void gradient(Build &build, const MicroBatch &batch) const;
  /// Targets below 0 are missing.
  void losses(Build &build, const MicroBatch &batch) const;

  /// The last block's output (N, width), taken from the arena, of whole sequences of `time`. `inputs` has the tokens
  /// (N), and the positions and ranges where the batch gives them.
  TensorRef hidden(Build &build, const Embedding::Inputs &inputs, int64_t rows, int64_t time) const;
  /// The same of new places of B sequences, behind those that each block has seen: `tokens` and `positions` (B · n)
  /// i32, of which −1 adds nothing, and a past for each block; of those that look at an encoder's memory what they know
  /// of it, too.
  TensorRef extend(Build &build, const TensorRef &tokens, const TensorRef &positions, const std::vector<Past> &pasts,
                   const std::vector<CrossPast> &crossPasts = {}) const;
  /// What extend() takes as the last of each block that looks at an encoder's memory, from the build's.
  void remember(Build &build, const std::vector<CrossPast> &crossPasts) const;
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
