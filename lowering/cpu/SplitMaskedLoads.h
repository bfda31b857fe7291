// Masked loads of more than one register, of which some register is not loaded at all.

#pragma once

#include <cstdint>

namespace llvm {
class Module;
} // namespace llvm

namespace kiln::lowering::cpu {

/// Takes such loads apart, so that LLVM's backend for AVX2 sees no masked load with a whole register of lanes that are
/// known to be off. `registerBits` is the width of a vector register.
void splitMaskedLoads(llvm::Module &module, int64_t registerBits);

} // namespace kiln::lowering::cpu
