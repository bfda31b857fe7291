// Dropout sites of a model, each with a row in the step's table of keys; and the gradient through dropout.

#pragma once

#include "kernels/dropout_rng.h"
#include "models/nn/build.h"

namespace kiln {

/// Dropout rates by kind of site.
struct DropoutOptions {
  double embedding = 0;  // on the embedding output
  double residual = 0;   // on each residual branch
  double activation = 0; // on the output of the MLP's activation
  double attention = 0;  // on attention weights
  DropoutKind kind = DropoutKind::inverted;
  DropoutRate of(double chance) const { return {chance, kind}; }
  bool operator==(const DropoutOptions &) const = default;
};

class DropoutSite {
public:
  /// A site that drops with `rate` in sequences of at most `maxLength` rows. With rate 0 no site is added.
  DropoutSite(ParameterList &list, const DropoutRate &rate, int64_t maxLength);
  /// Whether anything is dropped.
  bool drops() const { return number >= 0; }
  /// The dropout argument of plans in this build, if any.
  std::optional<Dropout> in(const Build &build) const;

private:
  DropoutRate rate;
  int64_t maxLength;
  int number;
};

/// The gradient at the input of dropout `site` from `dy`, that at its output: in new memory, or `dy` itself without
/// dropout. Release it with releaseDropped().
TensorRef takeDropped(Build &build, const DropoutSite &site, const TensorRef &dy);
void releaseDropped(Build &build, const DropoutSite &site, const TensorRef &masked);

} // namespace kiln
