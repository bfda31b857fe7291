// Masked stores of a single lane, as stores of a scalar.

#pragma once

namespace llvm {
class Module;
} // namespace llvm

namespace kiln::lowering::cpu {

/// Turns every masked store whose mask is a constant with one lane on into a store of that element.
void storeSingleLanes(llvm::Module &module);

} // namespace kiln::lowering::cpu
