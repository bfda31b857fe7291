// Runs the encoder before the decoder, and its backward pass after the decoder's.

#include "models/nn/encoder_decoder.h"

namespace kiln {

/// The encoder's options, with the shared token table.
static DecoderOptions sharing(const EncoderDecoderOptions &options, int table) {
  DecoderOptions encoder = options.encoder;
  if (options.sharesTable)
    encoder.embedding.table = table;
  return encoder;
}

EncoderDecoderNetwork::EncoderDecoderNetwork(const DecoderNames &encoderNames, const DecoderNames &decoderNames,
                                             const EncoderDecoderOptions &options, Type type, DecayOn decayOn)
    : DecoderNetwork(decoderNames, options.decoder, type), source(sharing(options, layers().tokenTable())),
      encoder(list, encoderNames, source) {
  list.place(decayOn);
}

std::vector<Input> EncoderDecoderNetwork::inputs(const BatchShape &shape) const {
  std::vector<Input> all = DecoderNetwork::inputs(shape);
  for (const Input &input : encoder.inputs(shape))
    all.push_back(input);
  return all;
}

void EncoderDecoderNetwork::derive(HostBatch &batch, const BatchShape &shape) const {
  DecoderNetwork::derive(batch, shape);
  encoder.derive(batch, shape);
}

void EncoderDecoderNetwork::gradient(Build &b, const MicroBatch &batch) const {
  Encoder::Saved saved;
  b.memory = encoder.forward(b, batch, saved);
  DecoderNetwork::gradient(b, batch);
  encoder.backward(b, batch, *b.memory, saved);
  b.memory.reset();
}

void EncoderDecoderNetwork::losses(Build &b, const MicroBatch &batch) const {
  b.memory = encoder.infer(
      b, [&](const std::string &name) -> const TensorRef & { return batch[name]; }, batch.shape.sequences,
      batch.shape.source);
  DecoderNetwork::losses(b, batch);
  b.release(b.memory->states);
  b.memory.reset();
}

void EncoderDecoderNetwork::read(Build &b, const Embedding::Inputs &inputs, int64_t sources, int64_t length,
                                 const std::vector<CrossKvCache> &caches) const {
  b.memory = encoder.infer(b, inputs, sources, length);
  layers().remember(b, caches);
  b.release(b.memory->states);
  b.memory.reset();
}

} // namespace kiln
