// Where the elements of a tile lie in a buffer of shared memory.

#pragma once

#include "dialect/simt/layout/TileLayout.h"

namespace kiln::lowering::gpu {

struct Place {
  llvm::SmallVector<int64_t> strides; // in bytes
  int64_t bytes = 0;
};

/// Row-major order without gaps.
Place densePlace(llvm::ArrayRef<int64_t> sizes, int64_t bytes);

/// Threads that write or read the tile, or parts of it, in their layout, so many times.
struct Use {
  simt::TileLayout layout;
  int64_t times = 1;
};

/// The place where these uses take the fewest wavefronts and instructions: elements are neighbours along one of the
/// dimensions, and where its rows fill whole turns through the banks, each begins 16 bytes further on, so that a column
/// does not lie in one bank.
Place cheapestPlace(llvm::ArrayRef<int64_t> sizes, int64_t bytes, llvm::ArrayRef<Use> uses);

} // namespace kiln::lowering::gpu
