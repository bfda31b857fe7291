// Interleaves the computations of several vectors, so that the CPU overlaps their dependency chains.

#pragma once

namespace llvm {
class Module;
} // namespace llvm

namespace kiln::lowering::cpu {

/// Reorders the instructions of blocks that repeat one computation for several vectors. It interleaves as many
/// computations as `registers` vector registers can hold. Results do not change.
void interleaveChains(llvm::Module &module, int registers);

} // namespace kiln::lowering::cpu
