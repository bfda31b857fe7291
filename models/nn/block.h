// A transformer block: attention and a feed-forward layer, each of which adds to the stream, and a norm before each of
// them, x + layer(norm(x)), or behind the sum, norm(x + layer(x)).

#pragma once

#include "models/nn/attention.h"
#include "models/nn/layer_norm.h"
#include "models/nn/mlp.h"

namespace kiln {

enum class BlockOrder { attention_first, mlp_first };
enum class NormPlace { pre, post };

/// What a block computes.
struct BlockOptions {
  BlockOrder order = BlockOrder::attention_first;
  NormPlace place = NormPlace::pre;
  NormOptions norm = {};
  AttentionOptions attention = {};
  MlpOptions mlp = {};
};

/// Names of a block's layers; norm1 is attention's, norm2 the feed-forward layer's.
struct BlockNames {
  LayerNames norm1;
  AttentionNames attention;
  LayerNames norm2;
  MlpNames mlp;
};

class Block {
public:
  /// In a model of sequences of at most `context` places.
  Block(ParameterList &list, const BlockNames &names, int64_t width, const BlockOptions &options, const Inits &inits,
        const DropoutOptions &dropout, int64_t context);

  /// What the backward pass needs of a layer with its norm.
  struct HalfSaved {
    TensorRef x;      // (N, C) what came in
    TensorRef normed; // (N, C) pre: the layer's input
    TensorRef sum;    // (N, C) post: what was normalised
    LayerNorm::Saved norm;
  };
  struct Saved {
    HalfSaved first, second;
    Attention::Saved attention;
    Mlp::Saved mlp;
  };

  /// The block's output, taken from the arena; x (N, C) is kept in `saved` and released by backward().
  TensorRef forward(Build &build, const TensorRef &x, int64_t batch, int64_t time, Saved &saved) const;
  /// The same with nothing kept: x becomes the output in place.
  void infer(Build &build, const TensorRef &x, int64_t batch, int64_t time) const;
  /// The same for new places of sequences, behind those that the layers have seen.
  void extend(Build &build, const TensorRef &x, const Past &past) const;
  /// The gradient by the input from that by the output, `dx` (N, C), in its place or in memory of its own; `dx` is
  /// released then. Releases all of `saved`.
  TensorRef backward(Build &build, const TensorRef &dx, const Saved &saved) const;

private:
  TensorRef attend(Build &build, const TensorRef &x, int64_t batch, int64_t time, HalfSaved &half, Saved &saved) const;
  TensorRef feed(Build &build, const TensorRef &x, HalfSaved &half, Saved &saved) const;
  /// A half around its layer: `layer(input, residual, output)` launches it, `name` is its output's.
  template <class Take, class Layer>
  TensorRef half(Build &build, const TensorRef &x, const char *name, const LayerNorm &norm, HalfSaved &half, Take take,
                 Layer layer) const;
  /// `layer(dy, x, dx, add)` launches its backward pass. `dnormed` (N, C) is used by pre-norm. As backward().
  template <class Layer>
  TensorRef halfBackward(Build &build, const TensorRef &dx, const TensorRef &dnormed, const LayerNorm &norm,
                         const HalfSaved &half, Layer layer) const;
  /// Both halves, of which `attend(input)` launches the one with attention.
  template <class Attend> void inferWith(Build &build, const TensorRef &x, Attend attend) const;
  template <class Layer>
  void halfInfer(Build &build, const TensorRef &x, const TensorRef &normed, const LayerNorm &norm,
                 const LayerNorm::Saved &statistics, Layer layer) const;

  int64_t width;
  bool isPre, attentionFirst;
  LayerNorm norm1;
  Attention attention;
  LayerNorm norm2;
  Mlp mlp;
};

} // namespace kiln
