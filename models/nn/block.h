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
    Reader x;    // (N, C) what came in
    Kept normed; // (N, C) pre: the layer's input
    Kept sum;    // (N, C) post: what was normalised
    LayerNorm::Saved norm;
  };
  struct Saved {
    TensorRef x; // (N, C) what came in
    Kept middle; // (N, C) what comes between the halves
    HalfSaved first, second;
    Attention::Saved attention;
    Mlp::Saved mlp;
  };

  /// The block's output, taken from the arena; x (N, C) is kept in `saved` and released by backward(). `saved` stays
  /// where it is until then.
  TensorRef forward(Build &build, const TensorRef &x, int64_t batch, int64_t time, Saved &saved) const;
  /// The same with nothing kept: x becomes the output in place.
  void infer(Build &build, const TensorRef &x, int64_t batch, int64_t time) const;
  /// The same for new places of sequences, behind those that the layers have seen.
  void extend(Build &build, const TensorRef &x, const Past &past) const;
  /// The gradient by the input from that by the output, `dx` (N, C), in its place or in memory of its own; `dx` is
  /// released then. Releases all of `saved`.
  TensorRef backward(Build &build, const TensorRef &dx, Saved &saved) const;

private:
  /// A half's layer as launches: begin() from its input, finish() to `y`, and what may be dropped behind that.
  struct Layer {
    const LayerNorm &norm;
    HalfSaved &half;
    std::function<void(Build &, const Reader &x)> begin;
    std::function<void(Build &, const TensorRef &residual, const TensorRef &y)> finish;
    std::function<void(Build &)> drop;
    std::function<void(Build &, const TensorRef &dy, const TensorRef &dx, bool add)> backward;
  };
  Layer attentionLayer(Saved &saved, int64_t batch, int64_t time) const;
  Layer mlpLayer(Saved &saved, int64_t rows) const;
  /// The halves in their order.
  std::array<Layer, 2> layers(Saved &saved, int64_t batch, int64_t time) const;
  /// Up to the layer's last launch, of N rows.
  void open(Build &build, const Layer &layer, int64_t rows) const;
  /// From there on: the half's output y (N, C). May be repeated.
  void close(Build &build, const Layer &layer, const TensorRef &y) const;
  void drop(Build &build, const Layer &layer) const;
  /// `dnormed` (N, C) is used by pre-norm. As backward().
  TensorRef halfBackward(Build &build, const Layer &layer, const TensorRef &dx, const TensorRef &dnormed) const;
  /// Both halves, of which `attend(input)` launches the one with attention.
  template <class Attend> void inferWith(Build &build, const TensorRef &x, Attend attend) const;
  template <class Infer>
  void halfInfer(Build &build, const TensorRef &x, const TensorRef &normed, const LayerNorm &norm,
                 const LayerNorm::Saved &statistics, Infer infer) const;

  int64_t width;
  bool isPre, attentionFirst;
  LayerNorm norm1;
  Attention attention;
  LayerNorm norm2;
  Mlp mlp;
};

} // namespace kiln
