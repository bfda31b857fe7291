// Tiles in shared memory with strides: their placement in a buffer, and the vector sizes and cost of accesses.

#pragma once

#include "dialect/simt/layout/TileLayout.h"

#include <vector>

namespace kiln::lowering::gpu {

// --- Accesses of the threads of a layout -----------------------------------------------------------------------------

/// Bytes from a buffer's beginning to an element; strides are in bytes.
int64_t offsetOf(llvm::ArrayRef<int64_t> position, llvm::ArrayRef<int64_t> strides);

/// Stored indices of elements that are neighbours in memory, in its order.
using SharedVector = llvm::SmallVector<int64_t, 8>;

/// The elements that each instruction of a thread moves. Together they are all values of the thread, except those past
/// the tile's end in every thread. An element has `bytes` bytes. All vectors have one size. It is the largest size up
/// to 16 bytes that registers allow, to which the addresses are aligned, and with which no vector crosses the tile's
/// end. `alignment` divides the address of the buffer.
std::vector<SharedVector> sharedVectors(const simt::TileLayout &layout, int64_t bytes, llvm::ArrayRef<int64_t> strides,
                                        int64_t alignment);

/// The cost of moving one warp's part of a tile.
struct SharedTraffic {
  int64_t instructions = 0, vectorBytes = 0;
  int64_t wavefronts = 0, ideal = 0; // of all instructions: 32 banks of 4 bytes serve one word each in a wavefront
};
SharedTraffic trafficOf(const simt::TileLayout &layout, int64_t bytes, llvm::ArrayRef<int64_t> strides,
                        int64_t alignment);

// --- Placement -------------------------------------------------------------------------------------------------------

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
