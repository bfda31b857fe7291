// GPT-2 as layers: which parameters it has, by Hugging Face's names, and the launches of a training micro-batch, of an
// evaluation and of a prediction.

#pragma once

#include "models/gpt2/config.h"
#include "models/nn/decoder.h"

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
  std::vector<Input> inputs(const BatchShape &shape) const override { return decoder.inputs(shape); }
  void derive(HostBatch &batch, const BatchShape &) const override { decoder.derive(batch); }
  void gradient(Build &build, const MicroBatch &batch) const override { decoder.gradient(build, batch); }
  /// Targets of ignoredTarget are missing.
  void losses(Build &build, const MicroBatch &batch) const override { decoder.losses(build, batch); }
  double flops(const BatchShape &shape) const override { return flopsOfStep(sizes, shape.sequences, shape.target); }
  std::string text() const override { return textOf(sizes); }
  nlohmann::ordered_json configJson(Type saved) const override;

  /// The last block's output (N, width), taken from the arena; tokens (N), whole sequences of `time`.
  TensorRef hidden(Build &build, const TensorRef &tokens, int64_t time) const;
  /// Logits (N, vocab) of rows of hidden().
  void logits(Build &build, const TensorRef &rows, const TensorRef &logits) const {
    decoder.logits(build, rows, logits);
  }

private:
  Gpt2Config sizes;
  ParameterList list;
  Decoder decoder;
};

} // namespace kiln
