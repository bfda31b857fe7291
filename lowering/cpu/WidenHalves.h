// Converts bf16 to f32 by one instruction instead of two.

#pragma once

namespace llvm {
class Module;
} // namespace llvm

namespace kiln::lowering::cpu {

/// The bits of a bf16 are the upper half of the f32's word. Replaces shifts of 16-bit elements into upper halves by
/// permutations: all of them if vectors have 512 bits; with 256 bits, only those of elements loaded from memory.
void widenHalves(llvm::Module &module, int vectorBits);

} // namespace kiln::lowering::cpu
