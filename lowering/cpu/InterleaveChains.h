// Work on several vectors side by side instead of one after the other.

#pragma once

namespace llvm {
class Module;
} // namespace llvm

namespace kiln::lowering::cpu {

/// Reorders the instructions of blocks that compute the same for several vectors, as many side by side as a CPU with
/// so many vector registers has room for. Results do not change.
void interleaveChains(llvm::Module &module, int registers);

} // namespace kiln::lowering::cpu
