// Attention of one head by the plain formulas in double precision, with the error that a correct kernel may have.
//
// Tolerances. The error of a score is (the error of a product of D terms + 4 · roundoff) · Σ |q k| · scale, and a
// rounding of the difference passed to exp. The relative error of a probability is that and exp's own: `relative`. In
// narrow storage, probabilities and score gradients are rounded to the storage type before the next product: `narrow`.
// Products add their own error.

#pragma once

#include "test/kernels/harness.h"

#include <functional>

namespace kiln {

/// q, dout and the kernel's own o (Tq, D), k and v (Tk, D).
struct AttentionHead {
  int64_t Tq, Tk, D;
  std::vector<double> q, k, v, o, dout;
  double scale;
  std::function<bool(int64_t i, int64_t j)> seen;                                  // whether query i sees key j
  std::function<double(int64_t i, int64_t j)> kept = [](auto, auto) { return 1; }; // what dropout makes of the weight
};

/// For products of D terms and of as many terms as queries or keys, and for rounding to storage.
struct AttentionErrors {
  double scores, sums, narrow, tiny;
};

/// o (Tq, D) and lse (Tq). A query without keys has 0 and ∞.
struct AttentionForward {
  std::vector<Want> o, lse;
};
AttentionForward attentionForward(const AttentionHead &head, const AttentionErrors &errors);

/// dq (Tq, D), dk and dv (Tk, D).
struct AttentionBackward {
  std::vector<Want> dq, dk, dv;
};
/// Adds to dk and dv, where they hold something: heads of a group.
void addAttentionBackward(const AttentionHead &head, const AttentionErrors &errors, AttentionBackward &to);

} // namespace kiln
