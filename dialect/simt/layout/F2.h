// Linear algebra over F2, the field of two elements, in which addition is exclusive or. A vector is an integer with one
// bit per coordinate. So adding two vectors is one instruction, and all functions below are Gaussian elimination on a
// few words.

#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>

namespace kiln::simt {

/// A vector over F2: bit i is coordinate i.
using Vec = uint64_t;
using Vecs = llvm::SmallVector<Vec, 8>;

/// The span of some vectors: all sums of them. It finds the vectors of a given sum.
class Span {
public:
  Span() = default;
  explicit Span(llvm::ArrayRef<Vec> vectors);

  /// Adds a vector, with index `count()`. Returns whether it is independent of the vectors before it.
  bool add(Vec vector);
  /// The set of added vectors (bit i: the i-th) whose sum is `vector`; nothing if it is not in the span. Vectors that
  /// depended on earlier ones are never used, so the answer uses the earliest possible vectors.
  std::optional<Vec> solve(Vec vector) const;
  bool has(Vec vector) const { return reduce(vector).vector == 0; }
  unsigned rank() const { return static_cast<unsigned>(rows.size()); }
  unsigned count() const { return added; }

private:
  struct Row {
    Vec vector; // has a highest bit that no other row has
    Vec sum;    // the set of added vectors whose sum it is
  };
  Row reduce(Vec vector) const;

  llvm::SmallVector<Row, 8> rows;
  unsigned added = 0;
};

/// The sum of the vectors i for which bit i of `which` is set.
Vec sumOf(llvm::ArrayRef<Vec> vectors, Vec which);

/// A basis of the sets of `vectors` whose sum is zero; bit i of a set is the i-th vector.
Vecs kernelOf(llvm::ArrayRef<Vec> vectors);

/// The candidates, in order, that are independent of `base` and of the candidates selected before.
Vecs extensionOf(llvm::ArrayRef<Vec> base, llvm::ArrayRef<Vec> candidates);

/// A basis of the intersection of the spans of `p` and `q`.
Vecs intersectionOf(llvm::ArrayRef<Vec> p, llvm::ArrayRef<Vec> q);

/// A basis S of a common complement: S with `p`, and S with `q`, are both bases of the span of `whole`. `p` and `q` are
/// bases of equal size of subspaces of it. Let i be a basis of their intersection; let a and b extend i to bases of p
/// and q; let c extend a basis of their sum to the whole. Then S = {c…, a₀ + b₀, a₁ + b₁, …}.
Vecs commonComplement(llvm::ArrayRef<Vec> p, llvm::ArrayRef<Vec> q, llvm::ArrayRef<Vec> whole);

/// Bit i of `value` moved to bit `places[i]`.
Vec depositBits(Vec value, llvm::ArrayRef<unsigned> places);

// --- Linear maps -----------------------------------------------------------------------------------------------------

// Linear maps over F2, stored as the images of the input bits. Layouts of tiles, and maps from a tile to shared memory,
// are such maps.

/// L(x) = the sum of the columns of the bits set in x. At most 64 inputs and 64 outputs.
class F2Map {
public:
  F2Map() = default;
  F2Map(unsigned outputs, llvm::ArrayRef<Vec> columns) : outputs(outputs), images(columns) {}
  static F2Map identity(unsigned size);

  unsigned numInputs() const { return static_cast<unsigned>(images.size()); }
  unsigned numOutputs() const { return outputs; }
  llvm::ArrayRef<Vec> columns() const { return images; }
  Vec operator()(Vec input) const { return sumOf(images, input); }

  /// The composition x ↦ outer(this(x)).
  F2Map then(const F2Map &outer) const;
  /// The map C with target(C(x)) = this(x): the inverse of `target` after this map. If there are several, the one that
  /// uses the lowest inputs of `target`. Nothing if the range of this map is not within that of `target`.
  std::optional<F2Map> solveInto(const F2Map &target) const;
  /// The inverse of a bijection.
  F2Map inverse() const;

  unsigned rank() const { return Span(images).rank(); }
  bool isInjective() const { return rank() == numInputs(); }
  bool isSurjective() const { return rank() == numOutputs(); }
  /// A basis of the inputs that map to zero.
  Vecs kernel() const { return kernelOf(images); }

  /// The direct sum: `low` maps the lower inputs to the lower outputs, and `high` the other inputs to the other
  /// outputs.
  static F2Map sum(const F2Map &low, const F2Map &high);

  bool operator==(const F2Map &other) const { return outputs == other.outputs && images == other.images; }

private:
  unsigned outputs = 0;
  Vecs images;
};

} // namespace kiln::simt
