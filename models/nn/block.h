// A transformer block: attention and a feed-forward layer, each of which adds to the stream, and a norm before each of
// them, x + layer(norm(x)), or behind the sum, norm(x + layer(x)). A block that looks at what an encoder made has a
// third such layer, behind attention.

#pragma once

#include "models/nn/cross_attention.h"
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
  bool cross = false; // looks at the build's memory, with heads as attention's
};

/// Names of a block's layers; norm1 is attention's, norm2 the feed-forward layer's, norm3 cross-attention's.
struct BlockNames {
  LayerNames norm1;
  AttentionNames attention;
  LayerNames norm2;
  MlpNames mlp;
  LayerNames norm3 = {};
  CrossAttentionNames cross = {};
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
    HalfSaved third;
    CrossAttention::Saved cross;
  };

  /// The block's output, taken from the arena; x (N, C) is kept in `saved` and released by backward().
  TensorRef forward(Build &build, const TensorRef &x, int64_t batch, int64_t time, Saved &saved) const;
  /// The same with nothing kept: x becomes the output in place.
  void infer(Build &build, const TensorRef &x, int64_t batch, int64_t time) const;
  /// The same for new places of sequences, behind those that the layers have seen; `crossPast` of a block that looks at
  /// what an encoder made.
  void extend(Build &build, const TensorRef &x, const Past &past, const CrossPast *crossPast = nullptr) const;
  /// Keys and values of the build's memory (B · S, 2C), for extend().
  void remember(Build &build, const TensorRef &kv) const { cross->remember(build, kv); }
  /// dx (N, C) holds the gradient by the output and becomes that by the input. Releases all of `saved`.
  void backward(Build &build, const TensorRef &dx, const Saved &saved) const;

private:
  TensorRef attend(Build &build, const TensorRef &x, int64_t batch, int64_t time, HalfSaved &half, Saved &saved) const;
  TensorRef feed(Build &build, const TensorRef &x, HalfSaved &half, Saved &saved) const;
  /// x itself where there is nothing to look at.
  TensorRef look(Build &build, const TensorRef &x, int64_t batch, int64_t time, Saved &saved) const;
  /// A half around its layer: `layer(input, residual, output)` launches it, `name` is its output's.
  template <class Take, class Layer>
  TensorRef half(Build &build, const TensorRef &x, const char *name, const LayerNorm &norm, HalfSaved &half, Take take,
                 Layer layer) const;
  /// `layer(dy, x, dx, add)` launches its backward pass. `dnormed` (N, C) is used by pre-norm.
  template <class Layer>
  void halfBackward(Build &build, const TensorRef &dx, const TensorRef &dnormed, const LayerNorm &norm,
                    const HalfSaved &half, Layer layer) const;
  /// All layers, of which `attend(input)` and `look(input)` launch those with attention.
  template <class Attend, class Look> void inferWith(Build &build, const TensorRef &x, Attend attend, Look look) const;
  template <class Layer>
  void halfInfer(Build &build, const TensorRef &x, const TensorRef &normed, const LayerNorm &norm,
                 const LayerNorm::Saved &statistics, Layer layer) const;

  int64_t width;
  bool isPre, attentionFirst;
  LayerNorm norm1;
  Attention attention;
  LayerNorm norm2;
  Mlp mlp;
  std::optional<LayerNorm> norm3;
  std::optional<CrossAttention> cross;
};

} // namespace kiln
