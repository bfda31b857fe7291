// Multi-head causal self-attention: the projection to queries, keys and values, attention (flash or plain), and the
// output projection, which adds the residual.

#pragma once

#include "kernels/attention.h"
#include "models/nn/dropout.h"
#include "models/nn/linear.h"
#include "models/nn/saved_activation.h"

namespace kiln {

/// Names of the two projections.
struct AttentionNames {
  LayerNames input, output;
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
  TensorRef starts;       // (B) i32, the index of a sequence's first new position; T: skip
  TensorRef ranges;       // (B, n, 2) i32, the visible range of each new position, as in kernels/attention.h
};

/// Broadcasts ranges (B, 2), common to all positions of a sequence, to (B, time, 2).
inline TensorRef repeatedRanges(TensorRef ranges, int64_t time) {
  ranges.extents = {ranges.extents[0], time, 2};
  ranges.strides = {ranges.strides[0], 0, 1};
  return ranges;
}

class Attention {
public:
  /// Projections (C → 3C) and (C → C), in a model of sequences of at most `context` positions.
  Attention(ParameterList &list, const AttentionNames &names, int64_t width, const AttentionOptions &options,
            const Inits &inits, const DropoutOptions &dropout, int64_t context);

  /// Activations saved for the backward pass.
  struct Saved {
    Reader x;              // (N, C) the input
    SavedActivation qkv;   // (N, 3C)
    SavedActivation mixed; // (N, C) attention's output, before the projection
    SavedActivation sums;  // (B, H, T) log-sum-exps; plain: (B, H, T, T) weights
  };

  /// y = residual + attention(x). x, residual, y (N, C) with N = batch · time. begin() computes all up to the output
  /// projection, finish() the projection; finish() may be repeated.
  void begin(Build &build, const Reader &x, int64_t batch, int64_t time, Saved &saved) const;
  void finish(Build &build, const TensorRef &residual, Saved &saved, const TensorRef &y) const;
  void drop(Build &build, Saved &saved) const;
  /// Both without the activations that only the backward pass needs.
  void infer(Build &build, const TensorRef &x, const TensorRef &residual, int64_t batch, int64_t time,
             const TensorRef &y) const;
  /// infer() for the n new positions of each sequence only; their keys and values are appended to the KV cache. x,
  /// residual, y (B · n, C); y may be `residual`.
  void extend(Build &build, const TensorRef &x, const TensorRef &residual, const KvCache &cache,
              const TensorRef &y) const;
  /// dx from dy, or dx += with `add`. Releases `saved` as it goes.
  void backward(Build &build, const TensorRef &dy, Saved &saved, const TensorRef &dx, bool add) const;

private:
  /// Attention itself, from the projected queries, keys and values to its output.
  void mix(Build &build, Saved &saved) const;
  void release(Build &build, Saved &saved) const;
  /// Masks and dropout of the attention weights.
  AttentionMask maskIn(const Build &build) const;
  /// Part 0 (q), 1 (k) or 2 (v) of a (N, 3C) matrix, as (B, H, T, D).
  TensorRef part(const TensorRef &qkv, const TensorRef &sums, int which) const;
  /// An (N, C) matrix as (B, H, T, D).
  TensorRef byHeads(const TensorRef &x, const TensorRef &sums) const;

  int64_t heads, width;
  float scale;
  bool isPlain;
  Linear input, output;
  DropoutSite residualSite, weightSite;
};

} // namespace kiln
