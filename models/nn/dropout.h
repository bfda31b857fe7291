// Where a model drops numbers: sites, each with a number in the step's table of keys.

#pragma once

#include "kernels/chances.h"
#include "models/nn/build.h"

namespace kiln {

/// The chances of a model's kinds of sites.
struct DropoutOptions {
  double embedding = 0;  // of the sum of embeddings
  double residual = 0;   // of what is added to the stream
  double activation = 0; // of what comes out of an activation
  double attention = 0;  // of attention's weights
  DropoutKind kind = DropoutKind::inverted;
  DropoutRate of(double chance) const { return {chance, kind}; }
  bool operator==(const DropoutOptions &) const = default;
};

class DropoutSite {
public:
  /// Drops with `rate` among sequences of at most `most` rows; without a chance it is no site.
  DropoutSite(ParameterList &list, const DropoutRate &rate, int64_t most);
  /// Whether anything is dropped.
  bool drops() const { return number >= 0; }
  /// What a plan is given in this build, if anything.
  std::optional<Dropout> in(const Build &build) const;

private:
  DropoutRate rate;
  int64_t most;
  int number;
};

} // namespace kiln
