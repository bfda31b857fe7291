// Token and position embedding: rows of a table of tokens, and of one of positions, and dropout of their sum.

#pragma once

#include "kernels/embedding.h"
#include "models/data/host_batch.h"
#include "models/nn/dropout.h"

namespace kiln {

/// Names of the two tables, whole.
struct EmbeddingNames {
  std::string tokens, positions;
};

/// Sizes of the two tables.
struct EmbeddingSizes {
  int64_t vocab = 0, context = 0, width = 0;
};

/// Where the rows of positions come from: nowhere, a table that is learned, or fixed sinusoids.
enum class PositionTable { none, learned, sinusoids };

struct EmbeddingOptions {
  double scale = 1; // of the tokens' rows
  PositionTable positions = PositionTable::learned;
  bool givesPositions = false; // a batch says which position each token has; else they are counted from 0
  Init tokenInit = {Init::Kind::normal, 0.02}, positionInit = {Init::Kind::normal, 0.02};
  /// Whether the token table holds the head's gradient when embeddings add theirs: rows of tokens that do not occur are
  /// then left as they are.
  bool tied = true;
  int table = -1; // of tokens, where another layer has made it; -1: its own
};

class Embedding {
public:
  /// Tables of tokens (vocab, width) and of positions (context, width), if any.
  Embedding(ParameterList &list, const EmbeddingNames &names, const EmbeddingSizes &sizes,
            const EmbeddingOptions &options, const DropoutOptions &dropout);

  /// Arrays of a micro-batch of so many rows beside its tokens: which positions, and the indices for the gradients.
  struct Array {
    std::string name;
    Shape extents;
  };
  std::vector<Array> arrays(int64_t rows) const;
  /// The indices, from the tokens and positions of the batch.
  void derive(HostBatch &batch) const;

  /// The arrays of arrays() by their names.
  using Inputs = std::function<const TensorRef &(const std::string &)>;
  /// x[n] = drop(scale · token table[tokens[n]] + position table[n mod time]).
  void forward(Build &build, const Inputs &inputs, int64_t time, const TensorRef &x) const;
  /// The same of tokens and positions (N) i32; −1 of either adds nothing.
  void forwardAt(Build &build, const TensorRef &tokens, const TensorRef &positions, const TensorRef &x) const;
  /// Gradients of both tables. That of the token table is added to what a tied head left there. dx (N, width) becomes
  /// the gradient of the sum before dropout.
  void backward(Build &build, const Inputs &inputs, const TensorRef &dx, int64_t time) const;

  int tokenTable() const { return tokens; }

private:
  bool learnsPositions() const { return options.positions == PositionTable::learned; }

  EmbeddingSizes sizes;
  EmbeddingOptions options;
  int tokens, positions = 0; // the second if there are any
  DropoutSite site;
};

/// Where each token of a batch occurs, as host arrays of fixed size: distinct = min(vocab, tokens), or, with `every`,
/// the vocabulary, of which those that do not occur own no positions. Unused entries of `tokens` are −1 and own none
/// either; nor does a token of −1.
struct HostEmbeddingIndex {
  std::vector<int32_t> tokens, starts, positions;
};
HostEmbeddingIndex indexOf(const std::vector<int32_t> &tokens, int64_t vocab, bool every = false);

} // namespace kiln
