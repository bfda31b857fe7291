// An encoder: embeddings, blocks whose places see all of their sequence, and a norm or none. What it makes of a source
// is the memory that a decoder looks at.

#pragma once

#include "models/nn/decoder.h"

namespace kiln {

class Encoder {
public:
  /// Adds its parameters to the list. Of names and options those of the head are not read; an embedding whose table
  /// another layer has made adds its gradient to what that has.
  Encoder(ParameterList &list, const DecoderNames &names, const DecoderOptions &options);

  /// `source tokens` (B · S); `source ranges` (B, 2), 0 and how many places of each are there; and what derive() adds.
  std::vector<Input> inputs(const BatchShape &shape) const;
  /// Indices, and by which places those of the source are seen: in the encoder, and in the decoder.
  void derive(HostBatch &batch, const BatchShape &shape) const;

  struct Saved {
    std::vector<Block::Saved> blocks;
    LayerNorm::Saved norm;
    TensorRef last; // (M, C), of which the norm is
  };
  /// The memory, whose states are taken from the arena.
  EncoderMemory forward(Build &build, const MicroBatch &batch, Saved &saved) const;
  /// The same with nothing kept, of B sequences of S places; `inputs` has the tokens and ranges alone.
  EncoderMemory infer(Build &build, const Embedding::Inputs &inputs, int64_t batch, int64_t source) const;
  /// From the gradient by the memory, which becomes something else. Releases `saved` and both.
  void backward(Build &build, const MicroBatch &batch, const EncoderMemory &memory, Saved &saved) const;

private:
  DecoderOptions sizes;
  Embedding embedding;
  std::vector<Block> blocks;
  std::optional<LayerNorm> last;
};

} // namespace kiln
