// How an extent of any size is laid out: padded a little, then split into an odd number of repeats of a core that is a
// power of two. F2-linear maps place the core; repeats lie in registers, one after the other. The rule is written here
// and nowhere else, and depends on the extent alone, so that all layouts of a tile, and of its slices, share it.

#pragma once

#include "dialect/simt/layout/F2.h"

namespace kiln::simt {

/// One dimension of a tile. A position in it is repeat · core + core position.
struct Extent {
  int64_t size = 1;      // E, as the program says
  int64_t padded = 1;    // P ≥ E; what positions E … P − 1 hold is unspecified
  unsigned coreBits = 0; // of C = 2^coreBits, the largest power of two in P
  int64_t repeats = 1;   // R = P / C, odd, at most 15

  int64_t core() const { return int64_t{1} << coreBits; }
  bool isPadded() const { return padded != size; }
  bool operator==(const Extent &other) const { return size == other.size; }

  /// The rule: E itself when it is 1 or 3 times a power of two; else the next power of two up to 16, and above that the
  /// next multiple of 16, or of an eighth of the largest power of two in E's range when that is more. `size` ≥ 1.
  static Extent of(int64_t size);
};

/// One bit of a core position: bit `bit` of dimension `dim`, which weighs 2^bit there.
struct Unit {
  unsigned dim = 0, bit = 0;

  int64_t weight() const { return int64_t{1} << bit; }
  bool operator==(const Unit &) const = default;
};

/// The extents of a tile. Core positions are vectors over F2: those of all dimensions in a row, the last one lowest.
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
  /// The unit that a vector with one bit set is.
  Unit unitOf(Vec vector) const;
  /// Which position in dimension `dim` a core position has.
  int64_t positionIn(unsigned dim, Vec core) const;
  /// The core position that is zero but for `position`, of 0 … C − 1, in dimension `dim`.
  Vec vectorAt(unsigned dim, int64_t position) const { return static_cast<Vec>(position) << shiftOf(dim); }
  /// The units of a dimension from bit `first` on, lowest first.
  Vecs unitsOf(unsigned dim, unsigned first = 0) const;

  bool operator==(const TileShape &) const = default;

private:
  unsigned shiftOf(unsigned dim) const;

  llvm::SmallVector<Extent, 4> extents;
};

} // namespace kiln::simt
