// A model of sequences that are made from others: an encoder, and a decoder that looks at what it makes of them. Which
// options and names it has, what it costs and how a file describes it is for the model to say.

#pragma once

#include "models/nn/decoder_network.h"
#include "models/nn/encoder.h"

namespace kiln {

struct EncoderDecoderOptions {
  DecoderOptions encoder, decoder; // of one width; the decoder's blocks have `cross`
  bool sharesTable = false;        // of tokens, by encoder and decoder
};

class EncoderDecoderNetwork : public DecoderNetwork {
public:
  /// Sequences and sources as long as the contexts. Shorter ones do as well.
  BatchShape shape(int64_t sequences) const override { return {sequences, context(), source.context}; }
  /// The decoder's inputs and the encoder's.
  std::vector<Input> inputs(const BatchShape &shape) const override;
  void derive(HostBatch &batch, const BatchShape &shape) const override;
  void gradient(Build &build, const MicroBatch &batch) const override;
  /// Targets of ignoredTarget are missing.
  void losses(Build &build, const MicroBatch &batch) const override;

  /// Appends what a decoder knows of sources, for each of its blocks, to be given to extend(): of B sources of S places
  /// whose `source tokens` (B · S) and `source ranges` (B, 2) `inputs` has.
  void read(Build &build, const Embedding::Inputs &inputs, int64_t sources, int64_t length,
            const std::vector<CrossPast> &pasts) const;

protected:
  EncoderDecoderNetwork(const DecoderNames &encoderNames, const DecoderNames &decoderNames,
                        const EncoderDecoderOptions &options, Type type, DecayOn decayOn);

private:
  DecoderOptions source;
  Encoder encoder;
};

} // namespace kiln
