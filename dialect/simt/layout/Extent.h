// Splits an extent of any size into powers of two. The extent is padded a little, and then divided into an odd number
// of repeats of a core whose size is a power of two. F2-linear maps place the core; repeats are consecutive registers.
// The rule is only here. It depends only on the extent, so all layouts of a tile and of its slices agree.

#pragma once

#include "dialect/simt/layout/F2.h"

namespace kiln::simt {

/// One dimension of a tile. A position in it is repeat · core + core position.
struct Extent {
  int64_t size = 1;      // E, the extent of the tile
  int64_t padded = 1;    // P ≥ E; the values at positions E … P − 1 are unspecified
  unsigned coreBits = 0; // of C = 2^coreBits, the largest power of two in P
  int64_t repeats = 1;   // R = P / C, odd, at most 15

  int64_t core() const { return int64_t{1} << coreBits; }
  bool isPadded() const { return padded != size; }
  bool operator==(const Extent &other) const { return size == other.size; }

  /// The padding rule, for `size` ≥ 1:
  /// - E is not padded if it is a power of two, or 3 times a power of two.
  /// - Otherwise, up to 16, it is padded to the next power of two.
  /// - Above 16 it is padded to the next multiple of 16, or of an eighth of the largest power of two up to E if that is
  ///   more.
  static Extent of(int64_t size);
};

/// One bit of a core position: bit `bit` of dimension `dim`, a step of 2^bit positions.
struct Unit {
  unsigned dim = 0, bit = 0;

  int64_t weight() const { return int64_t{1} << bit; }
  bool operator==(const Unit &) const = default;
};

/// The extents of a tile. A core position is a vector over F2: the bits of all dimensions, concatenated, with those of
/// the last dimension lowest.
class TileShape {
public:
  TileShape() = default;
  explicit TileShape(llvm::ArrayRef<int64_t> sizes);

  unsigned rank() const { return static_cast<unsigned>(extents.size()); }
  llvm::ArrayRef<Extent> dims() const { return extents; }
  const Extent &operator[](unsigned dim) const { return extents[dim]; }
  llvm::SmallVector<int64_t> sizes() const;

  /// The bits of a core position of the whole tile.
  unsigned coreBits() const;
  /// The cores in the padded tile: the product of the repeats.
  int64_t repeats() const;

  /// A unit as a vector.
  Vec vectorOf(Unit unit) const { return Vec{1} << (shiftOf(unit.dim) + unit.bit); }
  /// The unit of a vector with one bit set.
  Unit unitOf(Vec vector) const;
  /// The position of a core position in dimension `dim`.
  int64_t positionIn(unsigned dim, Vec core) const;
  /// The core position with `position`, from 0 to C − 1, in dimension `dim`, and 0 in all others.
  Vec vectorAt(unsigned dim, int64_t position) const { return static_cast<Vec>(position) << shiftOf(dim); }
  /// The units of a dimension from bit `first` on, lowest first.
  Vecs unitsOf(unsigned dim, unsigned first = 0) const;

  bool operator==(const TileShape &) const = default;

private:
  unsigned shiftOf(unsigned dim) const;

  llvm::SmallVector<Extent, 4> extents;
};

} // namespace kiln::simt
