// The output head: a GEMM with the token table (tied) or with a weight of its own, and a bias.

#pragma once

#include "models/nn/build.h"

namespace kiln {

struct HeadOptions {
  bool tied = true;
  bool bias = false;
};

class Head {
public:
  /// The weight (vocab, width), unless `tokenTable` is given (tied), and the bias (vocab), if any.
  Head(ParameterList &list, const LayerNames &names, int64_t vocab, int64_t width, int tokenTable,
       const HeadOptions &options, const LinearInit &init);

  /// logits (N, vocab) = x · weightᵀ + bias.
  void forward(Build &build, const TensorRef &x, const TensorRef &logits) const;
  /// dx = dlogits · weight. The weight's gradient (+)= dlogitsᵀ · x, the bias's (+)= Σ dlogits; both += with `add`.
  void backward(Build &build, const TensorRef &dlogits, const TensorRef &x, const TensorRef &dx,
                bool add = false) const;

private:
  int weight;
  std::optional<int> bias;
};

} // namespace kiln
