// Splits masked loads of several registers if the mask of a whole register is false.

#pragma once

#include <cstdint>

namespace llvm {
class Module;
} // namespace llvm

namespace kiln::lowering::cpu {

/// Splits such loads, so that LLVM's AVX2 backend gets no masked load with a register whose lanes are all known to be
/// masked off. `registerBits` is the width of a vector register.
void splitMaskedLoads(llvm::Module &module, int64_t registerBits);

} // namespace kiln::lowering::cpu
