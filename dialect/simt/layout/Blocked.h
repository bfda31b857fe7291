// Layouts for elementwise work and for memory: threads along the fastest dimension, each with a few elements in a row.

#pragma once

#include "dialect/simt/layout/TileLayout.h"

namespace kiln::simt {

/// Each thread gets a block of `perThread` elements (powers of two, one for each dimension; larger ones count as the
/// core's extent); the rest of the core goes to lanes, then to warps, then to registers, along the dimensions of
/// `order`, fastest first. Lanes and warps that nothing is left for hold the same as others. With a `line`, a power of
/// two, so many elements of the fastest dimension come first, and the rest of it last.
TileLayout blocked(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<unsigned> order, llvm::ArrayRef<int64_t> perThread,
                   unsigned numWarps, int64_t line = 0);

/// A stride that is not known while compiling.
inline constexpr int64_t unknownStride = INT64_MIN;

/// How a tile lies in memory, in elements.
struct Access {
  llvm::ArrayRef<int64_t> sizes;   // of the tile
  llvm::ArrayRef<int64_t> strides; // between elements of a dimension; `unknownStride`
  int64_t divisibility = 1;        // divides the tile's address and strides that are unknown
  unsigned bits = 32;              // of an element
};

/// The dimensions by stride, fastest first; unknown strides are the largest, of equal ones the last dimension is
/// fastest, and dimensions of extent 1 come last.
llvm::SmallVector<unsigned> orderOf(const Access &access);

/// Elements, a power of two, that a thread may load or store at once along the fastest dimension: at most 16 bytes,
/// aligned, dividing the tile's extent, and not so many that threads are left without any. 1 unless the fastest stride
/// is 1.
int64_t vectorWidth(const Access &access, unsigned numWarps);

/// The layout for a load or store: vectors of `vectorWidth` elements, consecutive threads along memory. With
/// `wholeRows` the lanes of a warp go on along the fastest dimension by themselves, and warps share what lies beside
/// it.
TileLayout coalesced(const Access &access, unsigned numWarps, bool wholeRows = false);

/// What an access moves when the tile lies in some layout.
struct Traffic {
  int64_t vector = 1;  // elements, a power of two, that a thread moves at once
  int64_t packets = 1; // times that it does
  int64_t bytes = 0;   // of different elements that a warp moves at once
  int64_t sectors = 0; // of 32 bytes that these lie in; unknown strides are taken for large
};
Traffic trafficOf(const Access &access, const TileLayout &layout);

} // namespace kiln::simt
