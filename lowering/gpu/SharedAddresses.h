// Addresses of a thread's elements in shared memory.
//
// The byte of an element is the exclusive or of a part that depends on the thread and a part that depends on the
// register. Bits that depend only on the register become displacements of instructions. For the other bits, there is
// one address for each of their few values, such as the pieces of a row of 128 bytes.

#pragma once

#include "lowering/gpu/ThreadCode.h"

namespace kiln::lowering::gpu {

class SharedAddresses {
public:
  /// `bytes` maps the bits of registers, lanes and warps to the offset in bytes. The tile begins at byte `at` of the
  /// buffer; null: 0.
  SharedAddresses(ThreadCode &code, const simt::F2Map &bytes, size_t regBits, mlir::Value buffer, mlir::Value at);

  struct Place {
    mlir::Value address;
    int64_t displacement;
  };
  /// The place of a register; `bytesOfRegisters` is its image under the map.
  Place of(simt::Vec bytesOfRegisters);

private:
  ThreadCode &code;
  mlir::Value begin, ofThread;
  simt::Vec movedByThreads = 0;
  std::map<simt::Vec, mlir::Value> addresses;
};

} // namespace kiln::lowering::gpu
