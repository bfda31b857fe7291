// Rewrites of vector code in LLVM's IR, before code generation. Each is described in the file of its name.

#pragma once

#include <cstdint>

namespace llvm {
class Module;
} // namespace llvm

namespace kiln::lowering::cpu {

/// Turns every masked store whose mask is a constant with one true lane into a store of that element.
void storeSingleLanes(llvm::Module &module);
/// Replaces accesses with constant masks of a few runs of lanes by accesses without masks.
void unmaskRuns(llvm::Module &module);
/// Halves masked loads of which some whole register of lanes is known to be off, so that LLVM's backend for AVX2 sees
/// none. `registerBits` is the width of a vector register.
void splitMaskedLoads(llvm::Module &module, int64_t registerBits);
/// Reorders the instructions of blocks that compute the same for several vectors, so that as many vectors progress
/// together as a CPU with so many vector registers has room for. Results do not change.
void interleaveChains(llvm::Module &module, int registers);
/// Turns shifts that widen bf16 to f32 into permutations: in vectors of 512 bits all of them, in vectors of 256 bits
/// those of elements loaded from memory.
void widenHalves(llvm::Module &module, int vectorBits);

} // namespace kiln::lowering::cpu
