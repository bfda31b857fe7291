// Scans along a dimension, by the bits of its positions from the lowest to the highest: registers of a thread, lanes
// that differ in one bit, and then warps.
//
// The lowest bit that belongs to warps divides the positions into *parts*. Each part is in one warp. Warps exchange
// only the totals of parts.

#pragma once

#include "dialect/simt/layout/TileLayout.h"

namespace kiln::simt {

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
