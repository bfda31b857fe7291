// An encoder: embeddings, blocks with bidirectional attention, and a final norm or none. Its output is the memory of a
// decoder's cross-attention.

#pragma once

#include "models/nn/decoder.h"

namespace kiln {

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

  struct Saved {
    std::vector<Block::Saved> blocks;
    LayerNorm::Saved norm;
    TensorRef last; // (M, C), input of the final norm
  };
  /// The encoder memory, whose states are taken from the arena.
  EncoderMemory forward(Build &build, const MicroBatch &batch, Saved &saved) const;
  /// forward() without saved activations, for B sequences of S positions; `inputs` has tokens and ranges only.
  EncoderMemory infer(Build &build, const Embedding::Inputs &inputs, int64_t batch, int64_t source) const;
  /// Backward pass from the gradient of the memory, which it overwrites. Releases `saved` and both buffers.
  void backward(Build &build, const MicroBatch &batch, const EncoderMemory &memory, Saved &saved) const;

private:
  DecoderOptions sizes;
  Embedding embedding;
  std::vector<Block> blocks;
  std::optional<LayerNorm> last;
};

} // namespace kiln
