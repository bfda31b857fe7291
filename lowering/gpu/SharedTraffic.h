// How the threads of a layout reach a tile that lies in shared memory by strides: how much at once, and what it costs.

#pragma once

#include "dialect/simt/layout/TileLayout.h"

namespace kiln::lowering::gpu {

/// Bytes from a buffer's beginning to an element; strides are in bytes.
int64_t offsetOf(llvm::ArrayRef<int64_t> position, llvm::ArrayRef<int64_t> strides);

/// Elements of `bytes` bytes that an instruction moves: the most, up to 16 bytes, whose places are neighbours within
/// the tile and whose addresses they divide. `alignment` divides the address of the buffer.
int64_t sharedPacket(const simt::TileLayout &layout, int64_t bytes, llvm::ArrayRef<int64_t> strides, int64_t alignment);

/// What one warp does to move its part of a tile.
struct SharedTraffic {
  int64_t instructions = 0, packetBytes = 0;
  int64_t wavefronts = 0, ideal = 0; // of all instructions: 32 banks of 4 bytes serve one word each in a wavefront
};
SharedTraffic trafficOf(const simt::TileLayout &layout, int64_t bytes, llvm::ArrayRef<int64_t> strides,
                        int64_t alignment);

} // namespace kiln::lowering::gpu
