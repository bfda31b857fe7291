// An encoder-decoder model. The derived model chooses options and names, counts its FLOPs and describes itself in a
// file.

#pragma once

#include "models/nn/decoder_network.h"
#include "models/nn/encoder.h"

namespace kiln {

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
