// Multi-head attention: the projections to queries, keys and values, attention (flash or plain), and the output
// projection, which adds the residual. Self-attention is causal, or sees the build's ranges. A decoder's
// cross-attention computes its keys and values from the encoder's output and sees all its positions.

#pragma once

#include "kernels/attention.h"
#include "models/nn/build.h"
#include "models/nn/dropout.h"
#include "models/nn/layers.h"

namespace kiln {

/// Names of the projections: of x (the queries of cross-attention), of the result, and of the encoder's output, which
/// only cross-attention has.
struct AttentionNames {
  LayerNames input, output, memory = {};
};

struct AttentionOptions {
  int64_t heads = 1;
  double scale = 1; // of the scores
  AttentionForm form = AttentionForm::flash;
  LinearOptions linear = {};
};

/// A layer's KV cache of some sequences, and the ranges of it that their new positions see, for incremental decoding.
struct KvCache {
  TensorRef keys, values; // (B, H, T, D), the KV cache, T positions a sequence
  TensorRef starts;       // (B) i32, the index of a sequence's first new position; T: skip. Of self-attention only
  TensorRef ranges;       // (B, n, 2) i32, the visible range of each new position, as in kernels/attention.h
};

/// Cross-attention's keys and values of source sequences, computed once for incremental decoding.
struct CrossKvCache {
  TensorRef kv;     // (B · S, 2C), of B sequences
  TensorRef ranges; // (B, 2) i32: the range of existing positions of each sequence
};

/// Broadcasts ranges (B, 2), common to all positions of a sequence, to (B, time, 2).
inline TensorRef repeatedRanges(TensorRef ranges, int64_t time) {
  ranges.extents = {ranges.extents[0], time, 2};
  ranges.strides = {ranges.strides[0], 0, 1};
  return ranges;
}

class Attention {
public:
  /// For sequences of at most `context` positions. Self-attention has projections (C → 3C) and (C → C). Cross-attention
  /// has (C → C), (C → 2C) of the encoder's output, and (C → C).
  Attention(ParameterList &list, const AttentionNames &names, int64_t width, const AttentionOptions &options,
            const Inits &inits, const DropoutOptions &dropout, int64_t context, bool isCross = false);

  /// Activations saved for the backward pass. It must not move until then.
  struct Saved {
    Reader x;              // (N, C) the input
    SavedActivation input; // (N, 3C) its projection; cross-attention: (N, C)
    SavedActivation kv;    // (M, 2C) of cross-attention
    SavedActivation mixed; // (N, C) attention's output, before the projection
    SavedActivation sums;  // (B, H, T) log-sum-exps; plain: (B, H, T, keys) weights
  };

  /// y = residual + attention(x). x, residual, y (N, C) with N = batch · time. begin() computes all up to the output
  /// projection, finish() the projection; finish() may be repeated.
  void begin(Build &build, const Reader &x, int64_t batch, int64_t time, Saved &saved) const;
  void finish(Build &build, const TensorRef &residual, Saved &saved, const TensorRef &y) const;
  /// Releases the activations that are recomputed.
  void drop(Build &build, Saved &saved) const;
  /// begin() and finish() without the activations that only the backward pass needs. y may be `residual`.
  void infer(Build &build, const TensorRef &x, const TensorRef &residual, int64_t batch, int64_t time,
             const TensorRef &y) const;
  /// infer() for the n new positions of each sequence only. Self-attention appends their keys and values to the KV
  /// cache. x, residual, y (B · n, C); y may be `residual`.
  void extend(Build &build, const TensorRef &x, const TensorRef &residual, const KvCache &cache,
              const TensorRef &y) const;
  /// Cross-attention's keys and values of the encoder's output (B · S, 2C), and as the cache of `time` new positions.
  void remember(Build &build, const TensorRef &kv) const { memory->forward(build, build.memory->states, kv); }
  KvCache known(const CrossKvCache &cache, int64_t time) const;
  /// dx from dy, or dx += with `add`. Releases `saved` as it goes. Cross-attention also computes the gradient of the
  /// encoder's output: the first layer writes it, the others add to it.
  void backward(Build &build, const TensorRef &dy, Saved &saved, const TensorRef &dx, bool add) const;

private:
  /// Queries, keys and values as (B, H, T, D).
  struct Heads {
    TensorRef q, k, v;
  };
  /// Those of the projections, or of their gradients; `kv` is of cross-attention.
  Heads splitHeads(const TensorRef &input, const TensorRef &kv, int64_t batch) const;
  /// Part `which` of an (N, parts · C) matrix of B sequences as (B, H, N / B, D).
  TensorRef byHeads(const TensorRef &x, int64_t batch, int which = 0) const;
  /// Attention itself, from the projected queries, keys and values to its output.
  void mix(Build &build, Saved &saved) const;
  void release(Build &build, Saved &saved) const;
  std::vector<SavedActivation *> all(Saved &saved) const;
  /// Masks and dropout of the attention weights, for `time` positions a sequence.
  AttentionMask maskIn(const Build &build, int64_t time) const;
  /// The name of a buffer of this layer.
  std::string called(const std::string &buffer) const { return memory ? "cross " + buffer : buffer; }
  /// Adds the FLOPs of the products to attention's launches.
  Plan counted(Plan plan, const TensorRef &q, const TensorRef &k) const;

  int64_t heads, width;
  float scale;
  bool isPlain;
  Linear input;
  std::optional<Linear> memory; // of cross-attention
  Linear output;
  DropoutSite residualSite, weightSite;
};

} // namespace kiln
