// Multi-head cross-attention: queries from a decoder's positions, keys and values from the encoder's output, and the
// output projection, which adds the residual.

#pragma once

#include "models/nn/attention.h"

namespace kiln {

/// Names of the three projections.
struct CrossAttentionNames {
  LayerNames query, memory, output;
};

/// Keys and values of source sequences, computed once for incremental decoding.
struct CrossKvCache {
  TensorRef kv;     // (B · S, 2C), of B sequences
  TensorRef ranges; // (B, 2) i32: the range of existing positions of each sequence
};

class CrossAttention {
public:
  /// Projections (C → C), (C → 2C) and (C → C).
  CrossAttention(ParameterList &list, const CrossAttentionNames &names, int64_t width, const AttentionOptions &options,
                 const Inits &inits, const DropoutOptions &dropout, int64_t context);

  /// Activations saved for the backward pass. It must not move until then.
  struct Saved {
    Reader x;              // (N, C) the input
    SavedActivation q;     // (N, C)
    SavedActivation kv;    // (M, 2C)
    SavedActivation mixed; // (N, C) attention's output, before the projection
    SavedActivation sums;  // (B, H, T) log-sum-exps; plain: (B, H, T, S) weights
  };
  /// Attention of x (N, C), `batch` sequences of `time` positions, to equally many sequences of the encoder memory, up
  /// to the output projection.
  void begin(Build &build, const Reader &x, int64_t batch, int64_t time, Saved &saved) const;
  /// y = residual + projection. residual, y (N, C). May be repeated.
  void finish(Build &build, const TensorRef &residual, Saved &saved, const TensorRef &y) const;
  /// Releases the activations that are recomputed.
  void drop(Build &build, Saved &saved) const;
  /// begin() and finish() without saved activations. y may be `residual`.
  void infer(Build &build, const TensorRef &x, const TensorRef &residual, int64_t batch, int64_t time,
             const TensorRef &y) const;
  /// infer() for new positions with known keys and values. y may be `residual`.
  void extend(Build &build, const TensorRef &x, const TensorRef &residual, const CrossKvCache &cache,
              const TensorRef &y) const;
  /// Writes keys and values of the encoder memory, for extend().
  void remember(Build &build, const TensorRef &kv) const { memory.forward(build, build.memory->states, kv); }
  /// dx from dy, or dx += with `add`. Also the gradient of the encoder memory: the first layer writes it, the others
  /// add to it. Releases `saved` as it goes.
  void backward(Build &build, const TensorRef &dy, Saved &saved, const TensorRef &dx, bool add) const;

private:
  void release(Build &build, Saved &saved) const;
  /// Launches attention, which writes `mixed` and `sums`.
  void mix(Build &build, Saved &saved) const;
  /// Masks and dropout for `time` positions a sequence.
  AttentionMask maskIn(const Build &build, int64_t time) const;
  /// An (N, C) matrix of B sequences as (B, H, N / B, D).
  TensorRef byHeads(const TensorRef &x, int64_t batch) const;
  /// Part 0 (k) or 1 (v) of an (M, 2C) matrix, as (B, H, S, D).
  TensorRef part(const TensorRef &kv, int64_t batch, int which) const;

  int64_t heads, width;
  float scale;
  bool isPlain;
  Linear query, memory, output;
  DropoutSite residualSite, weightSite;
};

} // namespace kiln
