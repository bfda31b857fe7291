// Linear algebra over F2, the field of two elements, whose sum is exclusive or. A vector is an integer, one coordinate
// a bit, so that adding two vectors is one instruction and everything below is Gaussian elimination on a few words.

#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>

namespace kiln::simt {

/// A vector over F2: bit i is coordinate i.
using Vec = uint64_t;
using Vecs = llvm::SmallVector<Vec, 8>;

/// The vectors that sums of some given vectors make, and how they make them.
class Span {
public:
  Span() = default;
  explicit Span(llvm::ArrayRef<Vec> vectors);

  /// Adds a vector, the `count()`-th; whether it is no sum of those before it.
  bool add(Vec vector);
  /// The vectors added (bit i: the i-th) whose sum is `vector`; nothing when it lies outside. A vector that was a sum
  /// of those before it is never used, so that of all answers this one takes the earliest.
  std::optional<Vec> solve(Vec vector) const;
  bool has(Vec vector) const { return reduce(vector).vector == 0; }
  unsigned rank() const { return static_cast<unsigned>(rows.size()); }
  unsigned count() const { return added; }

private:
  struct Row {
    Vec vector; // has a highest bit that no other row has
    Vec sum;    // of which vectors added
  };
  Row reduce(Vec vector) const;

  llvm::SmallVector<Row, 8> rows;
  unsigned added = 0;
};

/// The sum of those vectors whose bits are set in `which`.
Vec sumOf(llvm::ArrayRef<Vec> vectors, Vec which);

/// A basis of the sums of `vectors` that are zero: bit i of each stands for the i-th vector.
Vecs kernelOf(llvm::ArrayRef<Vec> vectors);

/// Those of `candidates`, in their order, that are no sum of `base` and of the ones taken before.
Vecs extensionOf(llvm::ArrayRef<Vec> base, llvm::ArrayRef<Vec> candidates);

/// A basis of the vectors that are sums of `p` as well as sums of `q`.
Vecs intersectionOf(llvm::ArrayRef<Vec> p, llvm::ArrayRef<Vec> q);

/// A basis S such that S with `p`, and S with `q`, are both bases of what `whole` spans. `p` and `q` are bases of equal
/// size within it. With i a basis of their intersection, a and b what extends i to p and to q, and c what extends both
/// to the whole, S = {c…, a₀ + b₀, a₁ + b₁, …}.
Vecs commonComplement(llvm::ArrayRef<Vec> p, llvm::ArrayRef<Vec> q, llvm::ArrayRef<Vec> whole);

/// Bit i of `value` moved to bit `places[i]`.
Vec depositBits(Vec value, llvm::ArrayRef<unsigned> places);

} // namespace kiln::simt
