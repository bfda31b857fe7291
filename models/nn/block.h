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
    Reader x;    // (N, C) what came in
    Kept normed; // (N, C) pre: the layer's input
    Kept sum;    // (N, C) post: what was normalised
    LayerNorm::Saved norm;
  };
  struct Saved {
    TensorRef x;                     // (N, C) what came in
    std::array<Kept, 2> middles;     // (N, C) what comes between the layers
    std::array<HalfSaved, 3> halves; // in their order
    Attention::Saved attention;
    CrossAttention::Saved cross;
    Mlp::Saved mlp;
  };

  /// The block's output, taken from the arena; x (N, C) is kept in `saved` and released by backward(). `saved` stays
  /// where it is until then.
  TensorRef forward(Build &build, const TensorRef &x, int64_t batch, int64_t time, Saved &saved) const;
  /// The same with nothing kept: x becomes the output in place.
  void infer(Build &build, const TensorRef &x, int64_t batch, int64_t time) const;
  /// The same for new places of sequences, behind those that the layers have seen; `crossPast` of a block that looks at
  /// what an encoder made.
  void extend(Build &build, const TensorRef &x, const Past &past, const CrossPast *crossPast = nullptr) const;
  /// Keys and values of the build's memory (B · S, 2C), for extend().
  void remember(Build &build, const TensorRef &kv) const { cross->remember(build, kv); }
  /// The gradient by the input from that by the output, `dx` (N, C), in its place or in memory of its own; `dx` is
  /// released then. Releases all of `saved`.
  TensorRef backward(Build &build, const TensorRef &dx, Saved &saved) const;

private:
  /// A half's layer as launches: begin() from its input, finish() to `y`, and what may be dropped behind that.
  struct Layer {
    const char *name, *result;
    const LayerNorm &norm;
    HalfSaved &half;
    std::function<void(Build &, const Reader &x)> begin;
    std::function<void(Build &, const TensorRef &residual, const TensorRef &y)> finish;
    std::function<void(Build &)> drop;
    std::function<void(Build &, const TensorRef &dy, const TensorRef &dx, bool add)> backward;
  };
  Layer attentionLayer(Saved &saved, int64_t batch, int64_t time) const;
  Layer crossLayer(Saved &saved, int64_t batch, int64_t time) const;
  Layer mlpLayer(Saved &saved, int64_t rows) const;
  /// The layers in their order.
  std::vector<Layer> layers(Saved &saved, int64_t batch, int64_t time) const;
  /// Up to the layer's last launch, of N rows.
  void open(Build &build, const Layer &layer, int64_t rows) const;
  /// From there on: the half's output y (N, C). May be repeated.
  void close(Build &build, const Layer &layer, const TensorRef &y) const;
  void drop(Build &build, const Layer &layer) const;
  /// `dnormed` (N, C) is used by pre-norm. As backward().
  TensorRef halfBackward(Build &build, const Layer &layer, const TensorRef &dx, const TensorRef &dnormed) const;
  /// All layers, of which `attend(input)` and `look(input)` launch those with attention.
  template <class Attend, class Look> void inferWith(Build &build, const TensorRef &x, Attend attend, Look look) const;
  template <class Infer>
  void halfInfer(Build &build, const TensorRef &x, const TensorRef &normed, const LayerNorm &norm,
                 const LayerNorm::Saved &statistics, Infer infer) const;

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
