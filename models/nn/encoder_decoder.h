// An encoder, and an encoder-decoder model.

#pragma once

#include "models/nn/decoder.h"

namespace kiln {

//===-- The encoder ---------------------------------------------------------------------------------------------===//
// An encoder: embeddings, blocks with bidirectional attention, and a final norm or none. Its output is the memory of a
// decoder's cross-attention.

class Encoder {
public:
  /// Adds its parameters to the list. Names and options of the head are ignored. An embedding that shares another
  /// layer's table adds its gradient to that table's.
  Encoder(ParameterList &list, const DecoderNames &names, const DecoderOptions &options);

  /// `source tokens` (B · S); `source ranges` (B, 2), 0 and the number of positions of each sequence; and the arrays of
  /// derive().
  std::vector<Input> inputs(const BatchShape &shape) const;
  /// Adds indices, and the ranges of positions that see each source position: in the encoder, and in the decoder.
  void derive(HostBatch &batch, const BatchShape &shape) const;

  /// The encoder memory, whose states are taken from the arena.
  EncoderMemory forward(Build &build, const MicroBatch &batch, Stack::Saved &saved) const;
  /// forward() without saved activations, for B sequences of S positions; `inputs` has tokens and ranges only.
  EncoderMemory infer(Build &build, const Embedding::Inputs &inputs, int64_t batch, int64_t source) const;
  /// Backward pass from the gradient of the memory, which it overwrites. Releases `saved` and both buffers.
  void backward(Build &build, const MicroBatch &batch, const EncoderMemory &memory, Stack::Saved &saved) const;

private:
  DecoderOptions sizes;
  Embedding embedding;
  Stack stack;
};

//===-- The model -----------------------------------------------------------------------------------------------===//
// An encoder-decoder model. The derived model chooses options and names, counts its FLOPs and describes itself in a
// file.

struct EncoderDecoderOptions {
  DecoderOptions encoder, decoder; // of equal width; the decoder's blocks have `cross`
  bool sharesTable = false;        // encoder and decoder share the token table
};

class EncoderDecoderNetwork : public DecoderNetwork {
public:
  /// Target and source sequences as long as the contexts; shorter ones are allowed.
  BatchShape shape(int64_t sequences) const override { return {sequences, context(), source.context}; }
  /// The inputs of the decoder and of the encoder.
  std::vector<Input> inputs(const BatchShape &shape) const override;
  void derive(HostBatch &batch, const BatchShape &shape) const override;
  void gradient(Build &build, const MicroBatch &batch) const override;
  /// Targets equal to ignoredTarget are ignored.
  void losses(Build &build, const MicroBatch &batch) const override;

  /// Computes the cross-attention keys and values of each decoder block for extend(), from B sources of S positions.
  /// `inputs` has `source tokens` (B · S) and `source ranges` (B, 2).
  void read(Build &build, const Embedding::Inputs &inputs, int64_t sources, int64_t length,
            const std::vector<CrossKvCache> &caches) const;

protected:
  EncoderDecoderNetwork(const DecoderNames &encoderNames, const DecoderNames &decoderNames,
                        const EncoderDecoderOptions &options, Type type, DecayOn decayOn);

private:
  DecoderOptions source;
  Encoder encoder;
};

} // namespace kiln
