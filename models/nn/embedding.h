// Token and position embedding: rows of a token table and of a position table, and dropout of their sum.

#pragma once

#include "kernels/embedding.h"
#include "models/data/host_batch.h"
#include "models/nn/dropout.h"

namespace kiln {

/// Full names of the two tables.
struct EmbeddingNames {
  std::string tokens, positions;
};

/// Sizes of the two tables.
struct EmbeddingSizes {
  int64_t vocab = 0, context = 0, width = 0;
};

/// Source of the position rows: none, a learned table, or fixed sinusoids.
enum class PositionTable { none, learned, sinusoids };

struct EmbeddingOptions {
  double scale = 1; // multiplies the token rows
  PositionTable positions = PositionTable::learned;
  bool givesPositions = false; // the batch gives the position of each token; otherwise they count from 0
  Init tokenInit = {Init::Kind::normal, 0.02}, positionInit = {Init::Kind::normal, 0.02};
  /// Whether the token table's gradient already holds that of the tied head. Rows of tokens that do not occur then do
  /// not change.
  bool tied = true;
  int table = -1; // index of a token table that another layer created; -1: its own
};

class Embedding {
public:
  /// Tables of tokens (vocab, width) and of positions (context, width), if any.
  Embedding(ParameterList &list, const EmbeddingNames &names, const EmbeddingSizes &sizes,
            const EmbeddingOptions &options, const DropoutOptions &dropout);

  /// Arrays of a micro-batch in addition to its tokens: positions, and the indices for the gradients.
  struct Array {
    std::string name;
    Shape extents;
  };
  std::vector<Array> arrays(int64_t rows) const;
  /// Computes the indices from the tokens and positions of the batch.
  void derive(HostBatch &batch) const;

  /// Maps names of arrays() to tensors.
  using Inputs = std::function<const TensorRef &(const std::string &)>;
  /// x[n] = drop(scale · token table[tokens[n]] + position table[n mod time]).
  void forward(Build &build, const Inputs &inputs, int64_t time, const TensorRef &x) const;
  /// forward() for tokens and positions (N) i32; −1 of either adds nothing.
  void forwardAt(Build &build, const TensorRef &tokens, const TensorRef &positions, const TensorRef &x) const;
  /// Gradients of both tables. That of the token table is added to the gradient of a tied head. dx (N, width) becomes
  /// the gradient of the sum before dropout.
  void backward(Build &build, const Inputs &inputs, const TensorRef &dx, int64_t time) const;

  int tokenTable() const { return tokens; }

private:
  bool learnsPositions() const { return options.positions == PositionTable::learned; }

  EmbeddingSizes sizes;
  EmbeddingOptions options;
  int tokens, positions = 0; // positions only if there is a table
  DropoutSite site;
};

/// The positions of each token of a batch, as host arrays of fixed size: distinct = min(vocab, tokens), or with `every`
/// the whole vocabulary. Unused entries of `tokens` are −1. Unused entries, tokens that do not occur, and token −1 have
/// no positions.
struct HostEmbeddingIndex {
  std::vector<int32_t> tokens, starts, positions;
};
HostEmbeddingIndex makeIndex(const std::vector<int32_t> &tokens, int64_t vocab, bool every = false);

} // namespace kiln
