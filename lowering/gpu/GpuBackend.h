// The GPU as a backend: lowering/gpu/README.md says how its passes generate code.

#pragma once

#include "lowering/Backend.h"
#include "lowering/Sources.h"
#include "lowering/gpu/GpuTarget.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/Module.h"

namespace kiln::lowering::gpu {

/// The backend for a target name:
/// - "sm_80", or another one of gpuTargets(): its code is PTX.
/// - "sm_80:cubin": its code is PTX, a zero byte, and the cubin.
/// - ":checked" at the end: assume() is checked, as device_assert().
/// Null for a name of another form. Throws Error for an unsupported architecture, and Error (device) for cubins without
/// nvJitLink.
std::shared_ptr<const Backend> openBackend(const std::string &name);

/// The module as PTX text, without a terminating zero. `sink`, if set, receives the stages "llvm" and "ptx". Throws
/// BackendError.
std::vector<char> emitPtx(llvm::Module &module, const GpuTarget &target, const StageSink &sink);

/// After the stage `layouts`: the kernel's threads and registers; of each operation on tiles its layout, and how
/// accesses, products, conversions and reductions are done.
void explainLayouts(mlir::ModuleOp module, Explanation &explanation);

/// After the stage `exchanges`, it describes shared memory, its writes and reads, and each barrier.
void explainExchanges(mlir::ModuleOp module, Explanation &explanation);

// --- Rewrites of LLVM's IR before code generation --------------------------------------------------------------------

/// Replaces operations on vectors by operations on their elements:
///
///     %s = fadd <2 x float> %x, %y        →   %s0 = fadd float %x0, %y0    %s1 = fadd float %x1, %y1
///
/// Insertions, extractions and shuffles with constant indices disappear. An operation that has no elementwise form,
/// such as a reduction or a load, keeps its vectors. Takes time proportional to the number of elements, if each
/// vector of a chain of insertions has one use. LLVM's scalarizer searches the chain for each element, which took a
/// third of LLVM's time.
void scalarizeVectors(llvm::Module &module);

/// Moves operations without side effects, and reads of shared memory, down to their first use in their block. LLVM's
/// scalarizer emits one operation for all elements of a thread, then the next operation. So all elements are live at
/// the same time:
///
///     a0 = x0 · s   a1 = x1 · s   b0 = a0 + c   b1 = a1 + c   store b0   store b1
///
/// Afterwards all operations of one element precede those of the next, and a product reads its operands piece by piece:
///
///     a0 = x0 · s   b0 = a0 + c   store b0   a1 = x1 · s   b1 = a1 + c   store b1
///
/// ptxas roughly keeps the given order. A read is not moved past an operation that may write. Arithmetic with the
/// result of a warpgroup's product stays before the wait for the next product, which the tensor cores compute
/// meanwhile.
void sinkValues(llvm::Module &module);

} // namespace kiln::lowering::gpu
