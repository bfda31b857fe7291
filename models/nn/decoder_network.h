// A language model that is a decoder: its parameters, the launches of a training micro-batch, of an evaluation and of a
// prediction. Which options and names it has, what it costs and how a file describes it is for the model to say.

#pragma once

#include "models/nn/decoder.h"

namespace kiln {

class DecoderNetwork : public Model {
public:
  const ParameterList &parameters() const override { return list; }
  Type type() const override { return element; }

  /// Sequences as long as the context. Shorter ones do as well: they have the first positions.
  BatchShape shape(int64_t sequences) const override { return {sequences, context()}; }
  /// Tokens and targets (N) of N = sequences · length, and the three arrays of the tokens' index.
  std::vector<Input> inputs(const BatchShape &shape) const override { return decoder.inputs(shape); }
  void derive(HostBatch &batch, const BatchShape &) const override { decoder.derive(batch); }
  double attentionShare(const HostBatch &batch, const BatchShape &shape) const override;
  void gradient(Build &build, const MicroBatch &batch) const override { decoder.gradient(build, batch); }
  /// Targets of ignoredTarget are missing.
  void losses(Build &build, const MicroBatch &batch) const override { decoder.losses(build, batch); }

  int64_t blocks() const override { return decoder.options().layers; }

  int64_t context() const { return decoder.options().context; }
  int64_t vocab() const { return decoder.options().vocab; }
  /// The last block's output (N, width), taken from the arena; tokens (N), whole sequences of `time`.
  TensorRef hidden(Build &build, const TensorRef &tokens, int64_t time) const;
  /// Logits (N, vocab) of rows of hidden().
  void logits(Build &build, const TensorRef &rows, const TensorRef &logits) const {
    decoder.logits(build, rows, logits);
  }

  const Decoder &layers() const { return decoder; }

protected:
  /// Of weights and activations of `type`.
  DecoderNetwork(const DecoderNames &names, const DecoderOptions &options, Type type, DecayOn decayOn);
  /// The same of a model that adds more to the list, and then places it.
  DecoderNetwork(const DecoderNames &names, const DecoderOptions &options, Type type);

  ParameterList list;

private:
  Type element;
  Decoder decoder;
};

/// Weights from the host, of the network's type and laid out as its parameters, on the device.
Tensor uploaded(const std::shared_ptr<Device> &device, const DecoderNetwork &network, const std::vector<char> &weights);

} // namespace kiln
