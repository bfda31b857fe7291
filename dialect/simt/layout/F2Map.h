// Linear maps over F2, stored as the images of the input bits. Layouts of tiles, and maps from a tile to shared memory,
// are such maps.

#pragma once

#include "dialect/simt/layout/F2.h"

namespace kiln::simt {

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
