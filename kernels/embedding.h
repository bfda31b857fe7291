// Token and position embedding: the forward pass gathers rows, the backward pass sums them in a fixed order.
//
// The backward pass uses an index that the data loader prepares. It lists, for each token of the batch, the positions
// where it occurs, in ascending order. One program sums the rows of one token, so no two programs write one row. It
// needs no atomics, and two runs agree bit for bit.

#pragma once

#include "kernels/dropout_rng.h"

namespace kiln {

struct EmbeddingConfig {
  int rows = 4;            // rows a program
  int block = 1;           // rows gathered at once in the token table's gradient
  bool accumulate = false; // adds gradients to the tables; set by the plan
  bool scaled = false;     // multiplies a token's gradient by a scale; set by the plan
};

/// The rows of the position table that are added: none, row n mod T, or given ones.
enum class Places { none, in_order, given };
/// Names of the values, in the order of the enumeration.
inline const std::vector<std::string> placesNames = {"none", "in_order", "given"};

struct EmbeddingSumConfig {
  int rows = 4; // rows a program
  // Set by the plan:
  Places places = Places::none;
  DropoutMode dropout = DropoutMode::off;
};

/// Where each token of a batch of N positions occurs. All i32.
struct EmbeddingIndex {
  TensorRef tokens;    // (U) distinct tokens; unused entries are −1
  TensorRef starts;    // (U + 1) token u occurs at positions[starts[u] … starts[u + 1])
  TensorRef positions; // (N) positions in the batch, grouped by token, ascending in each group
};

extern const Kernel embeddingKernel, embeddingSumKernel, tokenGradientKernel, positionGradientKernel;

/// Default config.
EmbeddingConfig pickEmbedding(const Target &target);

/// out[n] = wte[tokens[n]] + wpe[n mod T]. tokens (N) i32, wte (V, C), wpe (T', C) with T' ≥ T, out (N, C). A token
/// outside the vocabulary fails a check.
Plan planEmbedding(const Target &target, const TensorRef &tokens, const TensorRef &wte, const TensorRef &wpe,
                   const TensorRef &out, int64_t T, const std::optional<EmbeddingConfig> &config = {});

/// Optional terms of an embedding.
struct EmbeddingTerms {
  float scale = 1;                         // multiplies the token rows
  std::optional<TensorRef> places = {};    // (T', C), the position table
  std::optional<TensorRef> positions = {}; // (N) i32, rows of `places`; −1 adds nothing; default: row n mod T
  std::optional<Dropout> dropout = {};     // of the sum
};

/// out[n] = drop(scale · wte[tokens[n]] + places[position]); token −1 reads zeros. Other tokens outside the vocabulary,
/// and positions outside the table, fail a check.
Plan planEmbeddingSum(const Target &target, const TensorRef &tokens, const TensorRef &wte, const TensorRef &out,
                      int64_t T, const EmbeddingTerms &terms, const std::optional<EmbeddingSumConfig> &config = {});

/// dwte[v] (+)= Σ dout[n] over the positions n of token v. dout (N, C), dwte (V, C). With `accumulate` the sums are
/// added to the rows, for instance to the gradient of a tied head; otherwise they replace them. Rows of tokens outside
/// the index are not written. `scale` multiplies the sums.
Plan planTokenGradient(const Target &target, const EmbeddingIndex &index, const TensorRef &dout, const TensorRef &dwte,
                       bool accumulate, const std::optional<EmbeddingConfig> &config = {}, float scale = 1);

/// dwpe[t] (+)= Σ_b dout[b · T + t], in the order of the batch. dout (B · T, C), dwpe (T', C) with T' ≥ T. Rows from T
/// on are set to 0; with `accumulate` they do not change.
Plan planPositionGradient(const Target &target, const TensorRef &dout, const TensorRef &dwpe, int64_t T,
                          bool accumulate, const std::optional<EmbeddingConfig> &config = {});

} // namespace kiln
