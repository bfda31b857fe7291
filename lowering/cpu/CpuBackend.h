// The CPU's backend: its code generation and its explanations for `--explain`.

#pragma once

#include "lowering/Backend.h"
#include "lowering/Sources.h"
#include "lowering/cpu/CpuTarget.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/TargetParser/Triple.h"

#include <cstdint>

namespace llvm {
class Target;
} // namespace llvm

namespace llvm {
class Module;
} // namespace llvm

namespace kiln::lowering::cpu {

/// The backend of a CPU by name, as lowering::openBackend() takes them. Throws Error for a name that is none, and for a
/// CPU below x86-64-v3.
std::shared_ptr<const Backend> openBackend(const std::string &name);

/// LLVM's x86 backend, initialised on the first call.
const llvm::Target &x86Backend();
/// The triple of all generated code.
const llvm::Triple &cpuTriple();

/// Optimises `module` and emits it for `target`; `sink` receives the stages "llvm" and "asm". The code of the reference
/// backend (isReference) is hardly optimised, which makes compiling fast. Throws BackendError (Crashes.h).
std::vector<char> emitObject(llvm::Module &module, const CpuTarget &target, bool isReference, const StageSink &sink);

/// After the stage `loops`, it describes the kernel's vectors and scratch memory, and the iterations, vectors, accesses
/// and masks of each loop. It names the places that have two versions of the code, one of them without masks.
void explainLoops(mlir::ModuleOp module, Explanation &explanation);
/// At the stage `tile`, it names the products whose shape is slow on `target`, and a better shape.
void explainProducts(mlir::ModuleOp module, const CpuTarget &target, Explanation &explanation);

// --- Rewrites of LLVM's IR before code generation --------------------------------------------------------------------

/// Turns every masked store whose mask is a constant with one true lane into a store of that element.
void storeSingleLanes(llvm::Module &module);
/// Replaces accesses with constant masks of a few runs of lanes by accesses without masks.
void unmaskRuns(llvm::Module &module);
/// Halves masked loads of which some whole register of lanes is known to be off, so that LLVM's backend for AVX2 sees
/// none. `registerBits` is the width of a vector register.
void splitMaskedLoads(llvm::Module &module, int64_t registerBits);
/// Interleaves the instructions of blocks that compute the same for several vectors. As many vectors progress together
/// as a CPU with so many vector registers has room for. Results do not change.
void interleaveChains(llvm::Module &module, int registers);
/// Turns shifts that widen bf16 to f32 into permutations. In vectors of 256 bits, it does so only for elements loaded
/// from memory.
void widenHalves(llvm::Module &module, int vectorBits);

} // namespace kiln::lowering::cpu
