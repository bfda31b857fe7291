// Multi-head causal self-attention: the projection to queries, keys and values, attention over heads, flash or plain,
// and the projection back, which adds the residual.

#pragma once

#include "kernels/attention.h"
#include "models/nn/dropout.h"
#include "models/nn/kept.h"
#include "models/nn/linear.h"

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

/// What a layer has seen of some sequences, and what new places of theirs see of it: for those who write a text place
/// by place.
struct Past {
  TensorRef keys, values; // (B, H, T, D), a cache of at most T places each
  TensorRef starts;       // (B) i32, where a sequence's new places go; T: nowhere
  TensorRef ranges;       // (B, n, 2) i32, which places each new one sees, as kernels/attention.h has it
};

/// Ranges (B, 2), which all places of a sequence have, as those of `time` places each, (B, time, 2).
inline TensorRef repeatedRanges(TensorRef ranges, int64_t time) {
  ranges.extents = {ranges.extents[0], time, 2};
  ranges.strides = {ranges.strides[0], 0, 1};
  return ranges;
}

class Attention {
public:
  /// Projections (C → 3C) and (C → C), in a model of sequences of at most `context` places.
  Attention(ParameterList &list, const AttentionNames &names, int64_t width, const AttentionOptions &options,
            const Inits &inits, const DropoutOptions &dropout, int64_t context);

  /// What the backward pass needs.
  struct Saved {
    Reader x;   // (N, C) what came in
    Kept qkv;   // (N, 3C)
    Kept mixed; // (N, C) attention's result, before the projection
    Kept sums;  // (B, H, T) log-sum-exps; plain: (B, H, T, T) weights
  };

  /// y = residual + attention(x). x, residual, y (N, C) with N = batch · time: begin() does all up to the second
  /// projection, finish() that; it may be repeated.
  void begin(Build &build, const Reader &x, int64_t batch, int64_t time, Saved &saved) const;
  void finish(Build &build, const TensorRef &residual, Saved &saved, const TensorRef &y) const;
  void drop(Build &build, Saved &saved) const;
  /// The same without what only the backward pass needs.
  void infer(Build &build, const TensorRef &x, const TensorRef &residual, int64_t batch, int64_t time,
             const TensorRef &y) const;
  /// The same for the n new places of each sequence alone, whose keys and values join the past. x, residual, y (B · n,
  /// C); y may be `residual`.
  void extend(Build &build, const TensorRef &x, const TensorRef &residual, const Past &past, const TensorRef &y) const;
  /// dx from dy, or dx += with `add`; releases `saved` on the way.
  void backward(Build &build, const TensorRef &dy, Saved &saved, const TensorRef &dx, bool add) const;

private:
  /// Attention itself, from the projection to its result.
  void mix(Build &build, Saved &saved) const;
  void release(Build &build, Saved &saved) const;
  /// Which places see which, and which weights are dropped.
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
