// Scans along a dimension, by the bits of its positions from the lowest to the highest: registers of a thread, lanes
// that differ in one bit, and then warps.
//
// From the first bit on that stands for warps the positions fall into *parts*, each of one warp, which is all that
// warps have to tell each other of: what the elements of a part give together.

#pragma once

#include "dialect/simt/layout/TileLayout.h"

namespace kiln::simt {

struct ScanPlan {
  unsigned partBits = 0; // the bits of a position that count within a part
  int64_t parts = 1;     // along the dimension; 1 where no warps share it
  /// Numbers between the totals of neighbours along each dimension, and between parts along the scan's own, 1.
  llvm::SmallVector<int64_t> strides;
  int64_t totals = 0; // of all parts of all lines

  bool crossesWarps() const { return parts > 1; }
  /// Where in a buffer the totals of each of several tiles begin, whose elements have so many bytes, and where all end.
  llvm::SmallVector<int64_t> offsets(llvm::ArrayRef<int64_t> bytes) const;
};

/// The plan for a scan of `layout` along `dim`; nothing where lanes stand for a bit above one of the warps', so that
/// parts would not be of one warp.
std::optional<ScanPlan> planScan(const TileLayout &layout, unsigned dim);

} // namespace kiln::simt
