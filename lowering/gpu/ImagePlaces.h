// Where a thread's elements lie in an image in shared memory.
//
// The byte of an element is the exclusive or of what the thread's number and the register's number stand for. What
// registers alone move, in bits that no thread moves, is a displacement; for the rest there is one address for each of
// its few values, such as the pieces of a row of 128 bytes.

#pragma once

#include "lowering/gpu/ThreadCode.h"

namespace kiln::lowering::gpu {

class ImagePlaces {
public:
  /// The map gives, for the bits of registers, of lanes and of warps, the offset in bytes; the image begins at byte
  /// `at`, which may be null, of the buffer.
  ImagePlaces(ThreadCode &code, const simt::F2Map &bytes, size_t regBits, mlir::Value buffer, mlir::Value at);

  struct Place {
    mlir::Value address;
    int64_t displacement;
  };
  /// The place of the registers whose bytes are these.
  Place of(simt::Vec bytesOfRegisters);

private:
  ThreadCode &code;
  mlir::Value begin, ofThread;
  simt::Vec movedByThreads = 0;
  std::map<simt::Vec, mlir::Value> addresses;
};

} // namespace kiln::lowering::gpu
