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

  /// What the backward pass needs. It stays where it is until then.
  struct Saved {
    Reader x;   // (N, C) what came in
    Kept q;     // (N, C)
    Kept kv;    // (M, 2C)
    Kept mixed; // (N, C) attention's result, before the projection
    Kept sums;  // (B, H, T) log-sum-exps; plain: (B, H, T, S) weights
  };
  /// Attention of x (N, C), `batch` sequences of `time` places, to as many of the build's memory, up to the projection.
  void begin(Build &build, const Reader &x, int64_t batch, int64_t time, Saved &saved) const;
  /// y = residual + what follows. residual, y (N, C). May be repeated.
  void finish(Build &build, const TensorRef &residual, Saved &saved, const TensorRef &y) const;
  /// Gives back what is made again.
  void drop(Build &build, Saved &saved) const;
  /// Both with nothing kept. y may be `residual`.
  void infer(Build &build, const TensorRef &x, const TensorRef &residual, int64_t batch, int64_t time,
             const TensorRef &y) const;
  /// The same of new places whose keys and values are known. y may be `residual`.
  void extend(Build &build, const TensorRef &x, const TensorRef &residual, const CrossPast &past,
              const TensorRef &y) const;
  /// Keys and values of the build's memory, for extend().
  void remember(Build &build, const TensorRef &kv) const { memory.forward(build, build.memory->states, kv); }
  /// dx from dy, or dx += with `add`, and the gradient by the memory, which the first layer to ask for it writes and
  /// the others add to; releases `saved` on the way.
  void backward(Build &build, const TensorRef &dy, Saved &saved, const TensorRef &dx, bool add) const;

private:
  void release(Build &build, Saved &saved) const;
  /// Attention's launches: `mixed` and `sums`.
  void mix(Build &build, Saved &saved) const;
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
