// How the threads of a layout reach a tile that lies in shared memory by strides: how much at once, and what it costs.

#pragma once

#include "dialect/simt/layout/TileLayout.h"

#include <vector>

namespace kiln::lowering::gpu {

/// Bytes from a buffer's beginning to an element; strides are in bytes.
int64_t offsetOf(llvm::ArrayRef<int64_t> position, llvm::ArrayRef<int64_t> strides);

/// Stored indices of elements that are neighbours in memory, in its order.
using Packet = llvm::SmallVector<int64_t, 8>;

/// What each instruction of a thread moves: all of what it stores of a tile of elements of `bytes` bytes, but for what
/// lies past the tile's end in every thread. Packets are of one size, the largest up to 16 bytes that registers allow,
/// that divides its addresses, and that no end of the tile cuts. `alignment` divides the address of the buffer.
std::vector<Packet> sharedPackets(const simt::TileLayout &layout, int64_t bytes, llvm::ArrayRef<int64_t> strides,
                                  int64_t alignment);

/// What one warp does to move its part of a tile.
struct SharedTraffic {
  int64_t instructions = 0, packetBytes = 0;
  int64_t wavefronts = 0, ideal = 0; // of all instructions: 32 banks of 4 bytes serve one word each in a wavefront
};
SharedTraffic trafficOf(const simt::TileLayout &layout, int64_t bytes, llvm::ArrayRef<int64_t> strides,
                        int64_t alignment);

} // namespace kiln::lowering::gpu
