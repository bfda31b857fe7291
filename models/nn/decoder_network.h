// A language model that is a decoder: its parameters, and the launches of a training micro-batch, an evaluation and a
// prediction. The derived model chooses options and names, counts its FLOPs and describes itself in a file.

#pragma once

#include "models/nn/decoder.h"

namespace kiln {

class DecoderNetwork : public Model {
public:
  const ParameterList &parameters() const override { return list; }
  Type type() const override { return element; }

  /// Sequences as long as the context. Shorter ones are allowed and use the first positions.
  BatchShape shape(int64_t sequences) const override { return {sequences, context()}; }
  /// Tokens and targets (N) with N = sequences · length, and the three arrays of the token index.
  std::vector<Input> inputs(const BatchShape &shape) const override { return decoder.inputs(shape); }
  void derive(HostBatch &batch, const BatchShape &) const override { decoder.derive(batch); }
  double attentionShare(const HostBatch &batch, const BatchShape &shape) const override;
  void gradient(Build &build, const MicroBatch &batch) const override { decoder.gradient(build, batch); }
  /// Targets equal to ignoredTarget are ignored.
  void losses(Build &build, const MicroBatch &batch) const override { decoder.losses(build, batch); }

  int64_t blocks() const override { return decoder.options().layers; }

  int64_t context() const { return decoder.options().context; }
  int64_t vocab() const { return decoder.options().vocab; }
  /// The last block's output (N, width), taken from the arena, for tokens (N), whole sequences of `time` positions.
  TensorRef hidden(Build &build, const TensorRef &tokens, int64_t time) const;
  /// Logits (N, vocab) of rows of hidden().
  void logits(Build &build, const TensorRef &rows, const TensorRef &logits) const {
    decoder.logits(build, rows, logits);
  }

  const Decoder &layers() const { return decoder; }

protected:
  /// With weights and activations of `type`.
  DecoderNetwork(const DecoderNames &names, const DecoderOptions &options, Type type, DecayOn decayOn);
  /// As above, for a model that adds more parameters to the list and then places it.
  DecoderNetwork(const DecoderNames &names, const DecoderOptions &options, Type type);

  ParameterList list;

private:
  Type element;
  Decoder decoder;
};

/// Uploads host weights of the network's type, laid out as its parameters.
Tensor uploaded(const std::shared_ptr<Device> &device, const DecoderNetwork &network, const std::vector<char> &weights);

} // namespace kiln
