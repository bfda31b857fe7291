// Vectors of a thread as scalars.

#pragma once

#include "llvm/IR/Module.h"

namespace kiln::lowering::gpu {

/// Replaces operations on vectors by operations on their elements:
///
///     %s = fadd <2 x float> %x, %y        →   %s0 = fadd float %x0, %y0    %s1 = fadd float %x1, %y1
///
/// Insertions, extractions and shuffles with constant indices disappear. An operation that has no elementwise form,
/// such as a reduction or a load, keeps its vectors. Takes time proportional to the number of elements, if each
/// vector of a chain of insertions has one use. LLVM's scalarizer searches the chain for each element, which took a
/// third of LLVM's time.
void scalarizeVectors(llvm::Module &module);

} // namespace kiln::lowering::gpu
