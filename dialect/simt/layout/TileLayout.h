// Where the elements of a tile live: which register of which thread of which warp holds which element.
//
// Hardware counts in powers of two, so a place is a few numbers in binary: register, lane, warp, and block of a
// cluster. A layout says for each of their bits which unit of the tile's core (Extent.h) it stands for, or none: then
// both values of the bit hold the same. In CuTe's terms each bit is a mode of shape 2; in Triton's these are a
// LinearLayout's bases, each of which is zero or has one bit set. Repeats of the core are further registers of every
// thread:
//
//     stored index = repeat · 2^(register bits) + register,      repeat counted row-major over the dimensions
//     position in d = repeat in d · C of d + the weights of the bits, set in the place, whose units are in d
//
//     128x96, rep 1x3, reg [d1:1 d0:8 d1:8 d1:16 d0:64], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]
//
// is the accumulator of four warps: bit 0 of the register number moves one column to the right, bit 1 eight rows down,
// and so on; `d1:8` is the unit of weight 8 in dimension 1, `*` a bit that stands for none.

#pragma once

#include "dialect/simt/layout/Extent.h"
#include "dialect/simt/layout/F2Map.h"

#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/LogicalResult.h"
#include "llvm/Support/raw_ostream.h"

#include <array>

namespace kiln::simt {

/// The parts of a place.
enum class Hw : uint8_t { reg, lane, warp, block };
inline constexpr std::array everyHw = {Hw::reg, Hw::lane, Hw::warp, Hw::block};
/// `reg`, `lane`, `warp`, `block`.
llvm::StringRef nameOf(Hw part);

inline constexpr unsigned laneBits = 5, numLanes = 1u << laneBits;

/// A place but for the register: a thread.
struct Thread {
  unsigned lane = 0, warp = 0, block = 0;
};

/// One bit of a position in a dimension, and the bit of the place that stands for it.
struct AxisBit {
  unsigned bit; // of the position; it weighs 2^bit
  Hw part;
  unsigned index; // which bit of that part
};

/// Bits `from` … `from + width − 1` of a lane, warp or block number are bits `to` … of a position: a thread's share of
/// its position is the sum over the fields of ((number >> from) & (2^width − 1)) << to.
struct BitField {
  unsigned from, to, width;
  bool operator==(const BitField &) const = default;
};

/// Told why something is refused: in the form `expected …, but got …`.
using Complain = llvm::function_ref<void(const llvm::Twine &reason)>;

class TileLayout {
public:
  /// For each part, lowest bit first, a vector of the core or 0.
  using Bases = std::array<Vecs, 4>;

  /// The layout with these bases; complains and fails unless
  /// - extents are at least 1, and the core has at most 2^20 elements;
  /// - there are 5 lane bases, at most 5 of warps and 4 of blocks;
  /// - a basis of a register is a unit, any other a unit or 0; no two are equal but 0; every unit of the core is one.
  static llvm::FailureOr<TileLayout> get(llvm::ArrayRef<int64_t> sizes, const Bases &bases, Complain complain);
  /// The same, of bases that are known to be right.
  static TileLayout get(llvm::ArrayRef<int64_t> sizes, const Bases &bases);
  /// What `print` writes; `rep` and `block` may be left out. Complains and fails as `get` does, and of the text.
  static llvm::FailureOr<TileLayout> parse(llvm::StringRef text, Complain complain);
  void print(llvm::raw_ostream &os) const;
  std::string text() const;

  const TileShape &shape() const { return tile; }
  unsigned rank() const { return tile.rank(); }
  llvm::ArrayRef<Vec> bases(Hw part) const { return images[static_cast<size_t>(part)]; }
  unsigned regBits() const { return static_cast<unsigned>(bases(Hw::reg).size()); }
  unsigned numWarps() const { return 1u << bases(Hw::warp).size(); }
  /// Values that a thread holds: repeats · 2^(register bits).
  int64_t numStored() const { return tile.repeats() << regBits(); }

  /// Place to core position; the inputs are the register's bits, then the lane's, the warp's and the block's.
  F2Map core() const;
  /// The position that a thread's `stored`-th value has.
  llvm::SmallVector<int64_t> positionOf(int64_t stored, Thread thread = {}) const;
  /// The index at which thread 0 stores a position; nothing when it does not hold it. Two layouts of a tile that agree
  /// on threads store position p at these indices in *every* thread, if p is one of thread 0's.
  std::optional<int64_t> storedAt(llvm::ArrayRef<int64_t> position) const;
  /// The lowest and the highest position in `dim` that any thread's `stored`-th value has.
  std::pair<int64_t, int64_t> rangeOf(int64_t stored, unsigned dim) const;
  /// Whether no thread's `stored`-th value lies within the tile, so that nothing need be done for it.
  bool isDead(int64_t stored) const;
  /// Whether some threads' `stored`-th values lie past the end of `dim`, so that it needs a predicate.
  bool isRagged(int64_t stored, unsigned dim) const;
  /// A thread's share of its position in `dim`, by the bits of one part.
  llvm::SmallVector<BitField> fieldsOf(Hw part, unsigned dim) const;

  /// Bits of a part whose basis is 0. Threads that differ in these alone hold the same: only those with zeros there
  /// store to memory.
  Vec replicated(Hw part) const;
  /// The bits of the positions in `dim`, lowest first: the steps of a reduction or a scan along it.
  llvm::SmallVector<AxisBit> axisBits(unsigned dim) const;

  /// The layout that a reduction along `dim` leaves, without that dimension: bits of lanes and warps that stood for its
  /// units stand for none, registers that did are gone.
  TileLayout slice(unsigned dim) const;
  /// The layout with a dimension of extent 1 put before `dim`.
  TileLayout expand(unsigned dim) const;
  /// Dimension i of the result is dimension `order[i]` of this.
  TileLayout transpose(llvm::ArrayRef<unsigned> order) const;
  /// The same elements in row-major order under other extents, each staying at its stored index; nothing where that
  /// takes moves: extents that were padded, or an odd repeat that would not be outermost.
  std::optional<TileLayout> reshape(llvm::ArrayRef<int64_t> sizes) const;

  bool operator==(const TileLayout &) const = default;
  friend llvm::hash_code hash_value(const TileLayout &layout);

private:
  TileLayout(TileShape tile, Bases images) : tile(std::move(tile)), images(std::move(images)) {}
  static llvm::LogicalResult checkShape(llvm::ArrayRef<int64_t> sizes, Complain complain);
  /// Which repeat in `dim` a stored index belongs to.
  int64_t repeatOf(int64_t stored, unsigned dim) const;

  TileShape tile;
  Bases images;
};

inline llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const TileLayout &layout) {
  layout.print(os);
  return os;
}

} // namespace kiln::simt
