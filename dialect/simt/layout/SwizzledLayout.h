// Tiles in shared memory in the form that TMA writes and that ldmatrix and wgmma read: rows of up to 128 bytes. Their
// 16-byte pieces are permuted depending on the row (swizzle). So pieces at one column of eight consecutive rows are in
// different banks.
//
//     chunk 0: row 0, row 1, … of columns 0 … w − 1      chunk 1: row 0, row 1, … of the next w columns      …
//
// Chunks continue over the core and over its repeats. So one box of TMA is one chunk, and the rows of a chunk have
// equal distances even if their number is not a power of two.

#pragma once

#include "dialect/simt/layout/TileLayout.h"

namespace kiln::simt {

/// A swizzle. For each bit of a piece's number, lowest first, it has the bit of the number of the piece's 128-byte line
/// that is added to it.
using SwizzleBits = std::array<unsigned, 3>;
/// The swizzle of TMA and wgmma: pieces at one column of eight consecutive lines are in different banks.
inline constexpr SwizzleBits tmaSwizzle = {0, 1, 2};

/// The swizzle of `width` = 32, 64 or 128 bytes (less: none), as a map of the lowest `addressBits` bits of a byte
/// address. With tmaSwizzle it is a ↦ a ⊕ ((a >> 7) mod width / 16) << 4. It is its own inverse. A swizzled buffer
/// begins at a multiple of 8 · width bytes.
F2Map swizzle(unsigned width, unsigned addressBits, const SwizzleBits &swizzleBits = tmaSwizzle);

/// A tile of rank 2 in shared memory. Offsets and strides count elements.
struct SwizzledLayout {
  TileShape tile;
  unsigned inner = 1;                           // the contiguous dimension; the other one is that of the rows
  unsigned bits = 16;                           // of an element
  unsigned width = 128;                         // of a row, in bytes; the swizzle's
  F2Map core;                                   // core position to offset, if the rows have no repeats
  unsigned chunkBits = 0;                       // an offset's bits from here on count the chunks of the core …
  int64_t chunkStride = 0;                      // … and this is the distance between chunks
  std::array<int64_t, 2> repeatStride = {0, 0}; // between repeats of dimensions 0 and 1

  int64_t bytes() const;
  /// The offset of the element at a position.
  int64_t offsetOf(llvm::ArrayRef<int64_t> position) const;
};

/// The layout with rows of min(128, core of `inner`) bytes. Nothing if the swizzle would extend over repeats: if the
/// core of the rows is below 8 and they have repeats.
std::optional<SwizzledLayout> swizzledLayout(llvm::ArrayRef<int64_t> sizes, unsigned inner, unsigned bits,
                                             const SwizzleBits &swizzleBits = tmaSwizzle);

} // namespace kiln::simt
