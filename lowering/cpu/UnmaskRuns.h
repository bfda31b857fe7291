// Removes constant masks on CPUs where a masked access is slower than several unmasked ones: see UnmaskRuns.cpp.

#pragma once

namespace llvm {
class Module;
}

namespace kiln::lowering::cpu {

/// Replaces masked accesses of a few runs of lanes by unmasked accesses of these runs.
void unmaskRuns(llvm::Module &module);

} // namespace kiln::lowering::cpu
