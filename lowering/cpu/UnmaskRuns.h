// Masks that are constants, on CPUs where a mask costs more than what it leaves out: see UnmaskRuns.cpp.

#pragma once

namespace llvm {
class Module;
}

namespace kiln::lowering::cpu {

/// Takes the masks from accesses of a few runs of lanes.
void unmaskRuns(llvm::Module &module);

} // namespace kiln::lowering::cpu
