// Replaces masked stores of a single lane by scalar stores.

#pragma once

namespace llvm {
class Module;
} // namespace llvm

namespace kiln::lowering::cpu {

/// Replaces every masked store whose mask is a constant with exactly one true lane by a store of that element.
void storeSingleLanes(llvm::Module &module);

} // namespace kiln::lowering::cpu
