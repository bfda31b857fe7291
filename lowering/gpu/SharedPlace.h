// The placement of a tile in a buffer of shared memory.

#pragma once

#include "dialect/simt/layout/TileLayout.h"

namespace kiln::lowering::gpu {

struct Place {
  llvm::SmallVector<int64_t> strides; // in bytes
  int64_t bytes = 0;
};

/// Row-major order without gaps.
Place densePlace(llvm::ArrayRef<int64_t> sizes, int64_t bytes);

/// A number of reads or writes of the tile, or of parts of it, in a layout.
struct Use {
  simt::TileLayout layout;
  int64_t times = 1;
};

/// The placement with the fewest wavefronts and instructions for these uses. Elements are contiguous along one of the
/// dimensions. If a row's size is a multiple of all banks together, rows are padded by 16 bytes, so that a column is
/// not in one bank.
Place cheapestPlace(llvm::ArrayRef<int64_t> sizes, int64_t bytes, llvm::ArrayRef<Use> uses);

} // namespace kiln::lowering::gpu
