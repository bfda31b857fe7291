// Tiles in shared memory as TMA writes them and ldmatrix and wgmma read them: rows of up to 128 bytes, whose 16-byte
// pieces change places by the row that they are in, so that the pieces of eight rows below each other lie in all banks.
//
//     chunk 0: row 0, row 1, … of columns 0 … w − 1      chunk 1: row 0, row 1, … of the next w columns      …
//
// Chunks continue over the core and its repeats in the same way, so that one box of TMA is one chunk, and the rows of a
// chunk are equally far apart even where their number is no power of two.

#pragma once

#include "dialect/simt/layout/TileLayout.h"

namespace kiln::simt {

/// Which bit of the number of a line of 128 bytes is added to each bit of the number of a piece in it, lowest first.
using Turn = std::array<unsigned, 3>;
/// The one that TMA and wgmma know: the pieces of eight lines below each other lie in all banks.
inline constexpr Turn usualTurn = {0, 1, 2};

/// The swizzle of 32, 64 or 128 bytes (fewer: none), as a map of the lowest `addressBits` bits of a byte address: with
/// the usual turn a ↦ a ⊕ ((a >> 7) mod width / 16) << 4. It undoes itself. What is swizzled begins at a multiple of
/// 8 · width bytes.
F2Map swizzle(unsigned width, unsigned addressBits, const Turn &turn = usualTurn);

/// A tile of rank 2 in shared memory. Offsets and strides count elements.
struct SharedImage {
  TileShape tile;
  unsigned inner = 1;      // the dimension along which elements are neighbours; the other one is that of the rows
  unsigned bits = 16;      // of an element
  unsigned width = 128;    // of a row, in bytes; the swizzle's
  F2Map core;              // core position to offset, if the rows have no repeats
  unsigned chunkBits = 0;  // an offset's bits from here on count the chunks of the core …
  int64_t chunkStride = 0; // … which lie so far apart
  std::array<int64_t, 2> repeatStride = {0, 0}; // between repeats of dimensions 0 and 1

  int64_t bytes() const;
  /// Where the element at a position lies.
  int64_t offsetOf(llvm::ArrayRef<int64_t> position) const;
};

/// The image with rows of min(128, core of `inner`) bytes. Nothing when the swizzle would have to go across repeats:
/// the rows' core is below 8 and they have repeats.
std::optional<SharedImage> sharedImage(llvm::ArrayRef<int64_t> sizes, unsigned inner, unsigned bits,
                                       const Turn &turn = usualTurn);

} // namespace kiln::simt
