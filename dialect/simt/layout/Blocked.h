// Layouts for elementwise operations and memory accesses: threads are consecutive along the fastest dimension, and each
// has a few consecutive elements.

#pragma once

#include "dialect/simt/layout/TileLayout.h"

namespace kiln::simt {

/// Each thread gets a block of `perThread` elements: powers of two, one for each dimension. A number above the core's
/// extent counts as that extent. The remaining bits of the core are assigned to lanes, then to warps, then to
/// registers, along the dimensions of `order`, fastest first. If there are more lanes or warps than elements, some hold
/// copies. With a `line`, a power of two, the first `line` elements of the fastest dimension are assigned first, and
/// the other elements of it last.
TileLayout blocked(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<unsigned> order, llvm::ArrayRef<int64_t> perThread,
                   unsigned numWarps, int64_t line = 0);

/// A stride that is not known at compile time.
inline constexpr int64_t unknownStride = INT64_MIN;

/// The placement of a tile in memory; all numbers count elements.
struct Access {
  llvm::ArrayRef<int64_t> sizes;   // of the tile
  llvm::ArrayRef<int64_t> strides; // between elements of a dimension; `unknownStride`
  int64_t divisibility = 1;        // divides the tile's address and all unknown strides
  unsigned bits = 32;              // of an element
};

/// The dimensions in ascending order of stride (fastest first). Unknown strides count as the largest. Among equal
/// strides, the last dimension is fastest. Dimensions of extent 1 are last.
llvm::SmallVector<unsigned> orderOf(const Access &access);

/// The number of elements, a power of two, that a thread may load or store at once along the fastest dimension. It is
/// at most 16 bytes, aligned, divides the tile's extent, and leaves no thread without elements. It is 1 unless the
/// fastest stride is 1.
int64_t vectorWidth(const Access &access, unsigned numWarps);

/// The layout for a load or store: vectors of `vectorWidth` elements, with consecutive threads at consecutive
/// addresses. With `wholeRows`, each warp covers the fastest dimension alone, and the other dimensions are divided
/// among warps.
TileLayout coalesced(const Access &access, unsigned numWarps, bool wholeRows = false);

/// The memory traffic of an access in a layout.
struct Traffic {
  int64_t vector = 1;  // elements per instruction of a thread, a power of two
  int64_t vectors = 1; // instructions of a thread
  int64_t bytes = 0;   // of distinct elements per instruction of a warp
  int64_t sectors = 0; // 32-byte sectors per instruction of a warp; unknown strides are assumed to be large
};
Traffic trafficOf(const Access &access, const TileLayout &layout);

} // namespace kiln::simt
