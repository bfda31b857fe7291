// GPT-2 as layers: which parameters it has, by Hugging Face's names, and the launches of a training micro-batch, of an
// evaluation and of a prediction.

#pragma once

#include "models/gpt2/config.h"
#include "models/nn/block.h"
#include "models/nn/embedding.h"
#include "models/train/model.h"

namespace kiln {

class Network : public Model {
public:
  explicit Network(const Gpt2Config &config);

  const Gpt2Config &config() const { return sizes; }
  const ParameterList &parameters() const override { return list; }
  Type type() const override { return sizes.type; }

  /// Sequences as long as the context. Shorter ones do as well: they have the first positions.
  BatchShape shape(int64_t sequences) const override { return {sequences, sizes.context}; }
  /// Tokens and targets (N) of N = sequences · length, and the three arrays of the tokens' index.
  std::vector<Input> inputs(const BatchShape &shape) const override;
  void derive(HostBatch &batch, const BatchShape &shape) const override;
  void gradient(Build &build, const MicroBatch &batch) const override;
  /// Targets of ignoredTarget are missing.
  void losses(Build &build, const MicroBatch &batch) const override;
  double flops(const BatchShape &shape) const override { return flopsOfStep(sizes, shape.sequences, shape.target); }
  std::string text() const override { return textOf(sizes); }
  nlohmann::ordered_json configJson(Type saved) const override;

  /// The last block's output (N, width), taken from the arena; tokens (N), whole sequences of `time`.
  TensorRef hidden(Build &build, const TensorRef &tokens, int64_t time) const;
  /// Logits (N, vocab) of rows of hidden().
  void logits(Build &build, const TensorRef &rows, const TensorRef &logits) const;

private:
  /// Logits of rows of the last block's output, which are normalised into `normed` on the way.
  void head(Build &build, const TensorRef &rows, const LayerNorm::Saved &statistics, const TensorRef &normed,
            const TensorRef &logits) const;

  Gpt2Config sizes;
  ParameterList list;
  Embedding embedding;
  std::vector<Block> blocks;
  LayerNorm last;
};

} // namespace kiln
