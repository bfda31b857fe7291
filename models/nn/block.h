// One pre-norm transformer block: x + attention(norm(x)), then that + mlp(norm(that)).

#pragma once

#include "models/nn/attention.h"
#include "models/nn/layer_norm.h"
#include "models/nn/mlp.h"

namespace kiln {

/// What a block computes.
struct BlockSettings {
  int64_t heads = 0, width = 0;
  double epsilon = 0; // of its norms
  double scale = 0;   // of attention's scores
};

/// Names of a block's layers.
struct BlockNames {
  LayerNames norm1;
  AttentionNames attention;
  LayerNames norm2;
  MlpNames mlp;
};

class Block {
public:
  /// Weights begin with `deviation`, those that add to the residual stream with `residualDeviation`.
  Block(ParameterList &list, const BlockNames &names, const BlockSettings &settings, double deviation,
        double residualDeviation);

  struct Saved {
    TensorRef x, middle;        // (N, C) the block's input, and the sum after attention
    TensorRef normed1, normed2; // (N, C)
    LayerNorm::Saved norm1, norm2;
    Attention::Saved attention;
    Mlp::Saved mlp;
  };

  /// The block's output, taken from the arena; x (N, C) is kept in `saved` and released by backward().
  TensorRef forward(Build &build, const TensorRef &x, int64_t batch, int64_t time, Saved &saved) const;
  /// The same with nothing kept: x becomes the output in place.
  void infer(Build &build, const TensorRef &x, int64_t batch, int64_t time) const;
  /// dx (N, C) holds the gradient by the output and becomes that by the input. Releases all of `saved`.
  void backward(Build &build, const TensorRef &dx, const Saved &saved) const;

private:
  int64_t width;
  LayerNorm norm1;
  Attention attention;
  LayerNorm norm2;
  Mlp mlp;
};

} // namespace kiln
