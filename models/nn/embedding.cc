// The embedding's launches, and the counting sort that prepares its index.

#include "models/nn/embedding.h"
#include "kernels/matmul.h"

#include <algorithm>

namespace kiln {

Embedding::Embedding(ParameterList &list, const EmbeddingNames &names, int64_t vocab, int64_t context, int64_t width,
                     double deviation)
    : tokenTable(list.add(names.tokens, {vocab, width}, {Init::Kind::normal, deviation})),
      positionTable(list.add(names.positions, {context, width}, {Init::Kind::normal, deviation})) {}

void Embedding::forward(Build &b, const TensorRef &tokens, int64_t time, const TensorRef &x) const {
  const Scope scope(b, "embedding");
  b.plan += planEmbedding(b.target, tokens, b.value(tokenTable), b.value(positionTable), x, time);
}

void Embedding::backward(Build &b, const EmbeddingIndex &index, const TensorRef &dx, int64_t time) const {
  const Scope scope(b, "embedding backward");
  b.plan += planTokenGradient(b.target, index, dx, b.gradient(tokenTable), /*accumulate=*/true);
  b.plan += planPositionGradient(b.target, dx, b.gradient(positionTable), time, b.accumulate);
}

void Embedding::head(Build &b, const TensorRef &x, const TensorRef &logits) const {
  const Scope scope(b, "head");
  b.plan += planMatmul(b.target, Layout::nt, x, b.value(tokenTable), logits);
}

void Embedding::headBackward(Build &b, const TensorRef &dlogits, const TensorRef &x, const TensorRef &dx) const {
  const Scope scope(b, "head backward");
  b.plan += planMatmul(b.target, Layout::nn, dlogits, b.value(tokenTable), dx);
  b.plan += planWeightGradient(b.target, dlogits, x, b.gradient(tokenTable), {}, b.accumulate);
}

HostEmbeddingIndex indexOf(const std::vector<int32_t> &tokens, int64_t vocab) {
  const int64_t count = static_cast<int64_t>(tokens.size()), distinct = std::min(vocab, count);
  std::vector<std::vector<int32_t>> places(vocab);
  for (int64_t i = 0; i < count; ++i) {
    if (tokens[i] < 0 || tokens[i] >= vocab)
      throw Error("expected tokens below " + std::to_string(vocab) + ", but got " + std::to_string(tokens[i]));
    places[tokens[i]].push_back(static_cast<int32_t>(i));
  }
  HostEmbeddingIndex index;
  index.tokens.assign(distinct, -1);
  index.starts.assign(distinct + 1, static_cast<int32_t>(count));
  index.positions.reserve(count);
  int64_t u = 0;
  for (int64_t token = 0; token < vocab; ++token)
    if (!places[token].empty()) {
      index.tokens[u] = static_cast<int32_t>(token);
      index.starts[u++] = static_cast<int32_t>(index.positions.size());
      index.positions.insert(index.positions.end(), places[token].begin(), places[token].end());
    }
  return index;
}

} // namespace kiln
