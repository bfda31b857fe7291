// bf16 to f32, by one instruction instead of two.

#pragma once

namespace llvm {
class Module;
} // namespace llvm

namespace kiln::lowering::cpu {

/// Turns shifts of halves into the upper ends of words, which is what bf16 is to f32, into permutations: where vectors
/// have 512 bits every one, where they have 256 those of halves that come from memory.
void widenHalves(llvm::Module &module, int vectorBits);

} // namespace kiln::lowering::cpu
