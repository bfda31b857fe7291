// Multi-head attention of a sequence to another one: queries from its places, keys and values from what an encoder made
// of the other, and the projection back, which adds the residual.

#pragma once

#include "models/nn/attention.h"

namespace kiln {

/// Names of the three projections.
struct CrossAttentionNames {
  LayerNames query, memory, output;
};

/// Keys and values of a sequence that is read once, for those who write a text place by place.
struct CrossPast {
  TensorRef kv;     // (B · S, 2C), of B sequences
  TensorRef ranges; // (B, 2) i32: which of the S places of each are there
};

class CrossAttention {
public:
  /// Projections (C → C), (C → 2C) and (C → C).
  CrossAttention(ParameterList &list, const CrossAttentionNames &names, int64_t width, const AttentionOptions &options,
                 const Inits &inits, const DropoutOptions &dropout, int64_t context);

  struct Saved {
    TensorRef q;     // (N, C)
    TensorRef kv;    // (M, 2C)
    TensorRef mixed; // (N, C) attention's result, before the projection
    TensorRef sums;  // (B, H, T) log-sum-exps; plain: (B, H, T, S) weights
  };
  /// For `batch` sequences of `time` places, and as many of the build's memory.
  Saved take(Build &build, int64_t batch, int64_t time) const;
  void release(Build &build, const Saved &saved) const;

  /// y = residual + attention(x, the build's memory). x, residual, y (N, C).
  void forward(Build &build, const TensorRef &x, const TensorRef &residual, const Saved &saved,
               const TensorRef &y) const;
  /// The same of new places whose keys and values are known. y may be `residual`.
  void extend(Build &build, const TensorRef &x, const TensorRef &residual, const CrossPast &past,
              const TensorRef &y) const;
  /// Keys and values of the build's memory, for extend().
  void remember(Build &build, const TensorRef &kv) const { memory.forward(build, build.memory->states, kv); }
  /// dx from dy, or dx += with `add`, and the gradient by the memory, which the first layer to ask for it writes and
  /// the others add to; releases `saved` on the way. x as in forward.
  void backward(Build &build, const TensorRef &dy, const TensorRef &x, const Saved &saved, const TensorRef &dx,
                bool add) const;

private:
  /// Which places of the memory each of `time` places of a sequence sees, and which weights are dropped.
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
