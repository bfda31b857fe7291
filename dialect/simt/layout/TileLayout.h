// Layouts of tiles: the element of a tile that each register of each lane of each warp holds.
//
// A *place* is a register, a lane, a warp, and a block of a cluster. Their numbers are powers of two, so a place is a
// few binary numbers. A layout maps each of their bits to a unit of the tile's core (Extent.h), or to none; places that
// differ only in a bit without a unit hold copies. In CuTe's terms each bit is a mode of shape 2. In Triton's terms the
// units are the bases of a LinearLayout, each of which is zero or has one bit set. Repeats of the core are further
// registers of every thread:
//
//     stored index = repeat · 2^(register bits) + register,      repeat counted row-major over the dimensions
//     position in d = repeat in d · C of d + the weights of the set bits of the place whose units are in d
//
//     128x96, rep 1x3, reg [d1:1 d0:8 d1:8 d1:16 d0:64], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]
//
// is the accumulator of four warps. Bit 0 of the register number is a step of one column to the right, bit 1 of eight
// rows down, and so on. `d1:8` is the unit of weight 8 in dimension 1, and `*` a bit without a unit.

#pragma once

#include "dialect/simt/layout/Extent.h"
#include "dialect/simt/layout/F2.h"

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

/// A thread: a place without its register.
struct Thread {
  unsigned lane = 0, warp = 0, block = 0;
};

/// One bit of a position in a dimension, and the bit of the place whose unit it is.
struct AxisBit {
  unsigned bit; // of the position: a step of 2^bit
  Hw part;
  unsigned index; // of the bit in that part
};

/// Bits `from` … `from + width − 1` of a lane, warp or block number are bits `to` … of a position. A thread's share of
/// its position is the sum over the fields of ((number >> from) & (2^width − 1)) << to.
struct BitField {
  unsigned from, to, width;
  bool operator==(const BitField &) const = default;
};

/// Receives the reason for an error, in the form `expected …, but got …`.
using Complain = llvm::function_ref<void(const llvm::Twine &reason)>;

class TileLayout {
public:
  /// For each part, lowest bit first, a vector of the core or 0.
  using Bases = std::array<Vecs, 4>;

  /// The layout with these bases. If one of these conditions does not hold, calls `complain` and fails:
  /// - Extents are at least 1, and the core has at most 2^20 elements.
  /// - There are 5 lane bases, at most 5 warp bases and at most 4 block bases.
  /// - A register basis is a unit; any other basis is a unit or 0.
  /// - Every unit of the core occurs exactly once.
  static llvm::FailureOr<TileLayout> get(llvm::ArrayRef<int64_t> sizes, const Bases &bases, Complain complain);
  /// As above, for bases that are known to be valid.
  static TileLayout get(llvm::ArrayRef<int64_t> sizes, const Bases &bases);
  /// Parses the form that print() writes; `rep` and `block` may be omitted. Fails as get(), and for an invalid text.
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

  /// The map from places to core positions. The inputs are the register's bits, then the lane's, the warp's and the
  /// block's.
  F2Map core() const;
  /// The position of value `stored` of a thread.
  llvm::SmallVector<int64_t> positionOf(int64_t stored, Thread thread = {}) const;
  /// The stored index of a position in thread 0; nothing if thread 0 does not hold it. If two layouts of a tile agree
  /// on lanes, warps and blocks, these indices correspond in *every* thread.
  std::optional<int64_t> storedAt(llvm::ArrayRef<int64_t> position) const;
  /// The smallest and the largest position in `dim` of value `stored`, over all threads.
  std::pair<int64_t, int64_t> rangeOf(int64_t stored, unsigned dim) const;
  /// Whether value `stored` is outside of the tile in all threads, so that it needs no code.
  bool isDead(int64_t stored) const;
  /// Whether value `stored` is past the end of `dim` in some threads, so that it needs a predicate.
  bool isRagged(int64_t stored, unsigned dim) const;
  /// A thread's share of its position in `dim`, by the bits of one part.
  llvm::SmallVector<BitField> fieldsOf(Hw part, unsigned dim) const;

  /// The bits of a part whose basis is 0. Threads that differ only in these bits hold copies; only those with zeros
  /// there store to memory.
  Vec replicated(Hw part) const;
  /// The bits of the positions in `dim`, lowest first: the steps of a reduction or a scan along it.
  llvm::SmallVector<AxisBit> axisBits(unsigned dim) const;

  /// The layout of the result of a reduction along `dim`, without that dimension. Lane and warp bits with units in
  /// `dim` become bits without a unit; such register bits are removed.
  TileLayout slice(unsigned dim) const;
  /// The layout with a dimension of extent 1 inserted before `dim`.
  TileLayout expand(unsigned dim) const;
  /// Dimension i of the result is dimension `order[i]` of this.
  TileLayout transpose(llvm::ArrayRef<unsigned> order) const;
  /// The layout of half of the tile: the elements with one value of a bit of their positions in `dim`, and without that
  /// bit. Nothing unless it is a bit of the register's number, and unless it divides the extent into two halves.
  std::optional<TileLayout> half(unsigned dim, unsigned bit) const;
  /// The layout after a reshape to `sizes` (row-major) in which every element keeps its place. Nothing if elements
  /// would have to move: if extents were padded, or if an odd repeat would not be outermost.
  std::optional<TileLayout> reshape(llvm::ArrayRef<int64_t> sizes) const;

  bool operator==(const TileLayout &) const = default;
  friend llvm::hash_code hash_value(const TileLayout &layout);

private:
  TileLayout(TileShape tile, Bases images) : tile(std::move(tile)), images(std::move(images)) {}
  static llvm::LogicalResult checkShape(llvm::ArrayRef<int64_t> sizes, Complain complain);
  /// The repeat in `dim` of a stored index.
  int64_t repeatOf(int64_t stored, unsigned dim) const;

  TileShape tile;
  Bases images;
};

inline llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const TileLayout &layout) {
  layout.print(os);
  return os;
}

// --- Scans -----------------------------------------------------------------------------------------------------------

// Scans along a dimension, by the bits of its positions from the lowest to the highest. Registers of a thread come
// first, then lanes that differ in one bit, and then warps.
//
// The lowest bit that belongs to warps divides the positions into *parts*. Each part is in one warp. Warps exchange
// only the totals of parts.

struct ScanPlan {
  unsigned partBits = 0; // the bits of a position that count within a part
  int64_t parts = 1;     // along the dimension; 1 where no warps share it
  /// Strides of the totals in the buffer: between neighbours along each dimension, and 1 between parts along the
  /// scan's.
  llvm::SmallVector<int64_t> strides;
  int64_t totals = 0; // of all parts of all lines

  bool crossesWarps() const { return parts > 1; }
  /// The offsets in a buffer of the totals of several tiles, whose elements have `bytes` bytes, and the end of all.
  llvm::SmallVector<int64_t> offsets(llvm::ArrayRef<int64_t> bytes) const;
};

/// The plan for a scan of `layout` along `dim`. Nothing if a lane bit is above a warp bit along the dimension, because
/// a part would then not be in one warp.
std::optional<ScanPlan> planScan(const TileLayout &layout, unsigned dim);

} // namespace kiln::simt
