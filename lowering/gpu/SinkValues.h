// Reorders a thread's instructions to use fewer registers.

#pragma once

#include "llvm/IR/Module.h"

namespace kiln::lowering::gpu {

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
