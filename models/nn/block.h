// A transformer block: attention and an MLP, each with a residual connection. Norms come before each layer (pre-norm),
// x + layer(norm(x)), or after the sum (post-norm), norm(x + layer(x)). In a decoder block, cross-attention is a third
// layer, after self-attention.

#pragma once

#include "models/nn/attention.h"
#include "models/nn/layers.h"

namespace kiln {

enum class BlockOrder { attention_first, mlp_first };
enum class NormPlace { pre, post };

/// Options of a block.
struct BlockOptions {
  BlockOrder order = BlockOrder::attention_first;
  NormPlace place = NormPlace::pre;
  NormOptions norm = {};
  AttentionOptions attention = {};
  MlpOptions mlp = {};
  bool cross = false; // has cross-attention to the build's encoder memory, with as many heads
};

/// Names of a block's layers; norm1 belongs to attention, norm2 to the MLP, norm3 to cross-attention.
struct BlockNames {
  LayerNames norm1;
  AttentionNames attention;
  LayerNames norm2;
  MlpNames mlp;
  LayerNames norm3 = {};
  AttentionNames cross = {};
};

class Block {
public:
  /// For sequences of at most `context` positions.
  Block(ParameterList &list, const BlockNames &names, int64_t width, const BlockOptions &options, const Inits &inits,
        const DropoutOptions &dropout, int64_t context);

  /// Saved activations of a layer with its norm.
  struct HalfSaved {
    Reader x;               // (N, C) the input
    SavedActivation normed; // (N, C) pre-norm: the layer's input
    SavedActivation sum;    // (N, C) post-norm: the norm's input
    LayerNorm::Saved norm;
  };
  struct Saved {
    TensorRef x;                            // (N, C) the input
    std::array<SavedActivation, 2> middles; // (N, C) the residual stream between the layers
    std::array<HalfSaved, 3> halves;        // in order
    Attention::Saved attention, cross;
    Mlp::Saved mlp;
  };

  /// The block's output, taken from the arena. x (N, C) is saved in `saved` and released by backward(). `saved` must
  /// not move until then.
  TensorRef forward(Build &build, const TensorRef &x, int64_t batch, int64_t time, Saved &saved) const;
  /// forward() without saved activations: x becomes the output in place.
  void infer(Build &build, const TensorRef &x, int64_t batch, int64_t time) const;
  /// infer() for new positions of sequences, with the layers' KV caches; `crossCache` for a block with cross-attention.
  void extend(Build &build, const TensorRef &x, const KvCache &cache, const CrossKvCache *crossCache = nullptr) const;
  /// Writes keys and values of the encoder memory (B · S, 2C), for extend().
  void remember(Build &build, const TensorRef &kv) const { cross->remember(build, kv); }
  /// The gradient of the input from that of the output, `dx` (N, C), in place or in new memory; `dx` is released then.
  /// Releases all of `saved`.
  TensorRef backward(Build &build, const TensorRef &dx, Saved &saved) const;

private:
  /// A layer with its norm as launches: begin() from its input, finish() into `y`, and drop() for saved activations
  /// that are recomputed.
  struct Layer {
    const char *name, *result;
    const LayerNorm &norm;
    HalfSaved &half;
    std::function<void(Build &, const Reader &x)> begin;
    std::function<void(Build &, const TensorRef &residual, const TensorRef &y)> finish;
    std::function<void(Build &)> drop;
    std::function<void(Build &, const TensorRef &dy, const TensorRef &dx, bool add)> backward;
  };
  /// The layers, in order.
  std::vector<Layer> layers(Saved &saved, int64_t batch, int64_t time) const;
  /// All except the layer's last launch, for N rows.
  void open(Build &build, const Layer &layer, int64_t rows) const;
  /// The rest: the output y (N, C). May be repeated.
  void close(Build &build, const Layer &layer, const TensorRef &y) const;
  void drop(Build &build, const Layer &layer) const;
  /// `dnormed` (N, C) is used by pre-norm. As backward().
  TensorRef halfBackward(Build &build, const Layer &layer, const TensorRef &dx, const TensorRef &dnormed) const;
  /// All layers; `attend(input)` and `look(input)` launch self-attention and cross-attention.
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
  std::optional<Attention> cross;
};

} // namespace kiln
