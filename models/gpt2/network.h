// GPT-2 as layers: which parameters it has, and the launches of a training micro-batch, of an evaluation and of a
// prediction. No memory and no device here; a Build brings both as addresses.

#pragma once

#include "models/gpt2/config.h"
#include "models/nn/block.h"
#include "models/nn/embedding.h"

namespace kiln {

/// What a micro-batch of N = batch · context tokens brings, and where its losses go.
struct BatchRefs {
  TensorRef tokens, targets; // (N) i32
  EmbeddingIndex index;      // over `tokens`
  TensorRef losses;          // (N) f32
};

class Network {
public:
  explicit Network(const Gpt2Config &config);

  const Gpt2Config &config() const { return sizes; }
  const ParameterList &parameters() const { return list; }

  /// Losses, and the gradient of `scale` times their sum by every parameter.
  void gradient(Build &build, const BatchRefs &refs, int64_t batch, float scale) const;
  /// Losses alone; targets of ignoredTarget have none.
  void losses(Build &build, const BatchRefs &refs, int64_t batch) const;
  /// The last block's output (batch · context, width), taken from the arena.
  TensorRef hidden(Build &build, const TensorRef &tokens, int64_t batch) const;
  /// Logits (N, vocab) of rows of hidden().
  void logits(Build &build, const TensorRef &rows, const TensorRef &logits) const;

private:
  Gpt2Config sizes;
  ParameterList list;
  Embedding embedding;
  std::vector<Block> blocks;
  LayerNorm last;
};

} // namespace kiln
