// Token and position embedding, and the head that shares the token table.

#pragma once

#include "kernels/embedding.h"
#include "models/nn/build.h"

namespace kiln {

/// Names of the two tables, whole.
struct EmbeddingNames {
  std::string tokens, positions;
};

class Embedding {
public:
  /// Tables of tokens (vocab, width) and of positions (context, width), drawn with `deviation`.
  Embedding(ParameterList &list, const EmbeddingNames &names, int64_t vocab, int64_t context, int64_t width,
            double deviation);

  /// x[n] = token table[tokens[n]] + position table[n mod time].
  void forward(Build &build, const TensorRef &tokens, int64_t time, const TensorRef &x) const;
  /// Gradients of both tables. That of the token table is added to what headBackward() left there.
  void backward(Build &build, const EmbeddingIndex &index, const TensorRef &dx, int64_t time) const;

  /// logits (N, vocab) = x · token tableᵀ.
  void head(Build &build, const TensorRef &x, const TensorRef &logits) const;
  /// dx = dlogits · token table, and the token table's gradient (+)= dlogitsᵀ · x.
  void headBackward(Build &build, const TensorRef &dlogits, const TensorRef &x, const TensorRef &dx) const;

private:
  int tokenTable, positionTable;
};

/// Where each token of a batch occurs, as host arrays of fixed size: distinct = min(vocab, tokens). Unused entries of
/// `tokens` are −1 and own no positions.
struct HostEmbeddingIndex {
  std::vector<int32_t> tokens, starts, positions;
};
HostEmbeddingIndex indexOf(const std::vector<int32_t> &tokens, int64_t vocab);

} // namespace kiln
