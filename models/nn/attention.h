// Multi-head causal self-attention: the projection to queries, keys and values, attention over heads, flash or plain,
// and the projection back, which adds the residual.

#pragma once

#include "kernels/attention.h"
#include "models/nn/dropout.h"
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

  struct Saved {
    TensorRef qkv;   // (N, 3C)
    TensorRef mixed; // (N, C) attention's result, before the projection
    TensorRef sums;  // (B, H, T) log-sum-exps; plain: (B, H, T, T) weights
  };
  Saved take(Build &build, int64_t batch, int64_t time) const;
  void release(Build &build, const Saved &saved) const;

  /// y = residual + attention(x). x, residual, y (N, C) with N = batch · time.
  void forward(Build &build, const TensorRef &x, const TensorRef &residual, const Saved &saved,
               const TensorRef &y) const;
  /// The same for the n new places of each sequence alone, whose keys and values join the past. x, residual, y (B · n,
  /// C); y may be `residual`.
  void extend(Build &build, const TensorRef &x, const TensorRef &residual, const Past &past, const TensorRef &y) const;
  /// dx from dy, or dx += with `add`; releases `saved` on the way. x as in forward.
  void backward(Build &build, const TensorRef &dy, const TensorRef &x, const Saved &saved, const TensorRef &dx,
                bool add) const;

private:
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
