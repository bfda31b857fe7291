// From the stream to logits: a product by the table of tokens, which a tied head shares with the embedding, and a bias.

#pragma once

#include "models/nn/build.h"

namespace kiln {

struct HeadOptions {
  bool tied = true;
  bool bias = false;
};

class Head {
public:
  /// The weight (vocab, width), unless `tokenTable` is it, and the bias (vocab), if any.
  Head(ParameterList &list, const LayerNames &names, int64_t vocab, int64_t width, int tokenTable,
       const HeadOptions &options, const LinearInit &init);

  /// logits (N, vocab) = x · weightᵀ + bias.
  void forward(Build &build, const TensorRef &x, const TensorRef &logits) const;
  /// dx = dlogits · weight; the weight's gradient (+)= dlogitsᵀ · x, the bias's (+)= Σ dlogits, += with `add`, too.
  void backward(Build &build, const TensorRef &dlogits, const TensorRef &x, const TensorRef &dx,
                bool add = false) const;

private:
  int weight;
  std::optional<int> bias;
};

} // namespace kiln
