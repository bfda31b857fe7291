// The order of a thread's instructions, for the sake of its registers.

#pragma once

#include "llvm/IR/Module.h"

namespace kiln::lowering::gpu {

/// Moves what has no effect, and reads of shared memory, down to their first use in their block. The scalarizer leaves
/// one operation on all elements that a thread holds, then the next, so that all of them are live between any two:
///
///     a0 = x0 · s   a1 = x1 · s   b0 = a0 + c   b1 = a1 + c   store b0   store b1
///
/// Afterwards one element goes all the way, then the next; and a product reads its operands piece by piece:
///
///     a0 = x0 · s   b0 = a0 + c   store b0   a1 = x1 · s   b1 = a1 + c   store b1
///
/// ptxas keeps roughly to the order that it is given. A read stays above whatever may write. Arithmetic with the result
/// of a product of warpgroups stays above the wait for the next product, which the tensor cores compute meanwhile.
void sinkValues(llvm::Module &module);

} // namespace kiln::lowering::gpu
