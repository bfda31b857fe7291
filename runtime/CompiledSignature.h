// The signature of a traced kernel: the slots of its argument block, and the facts that a launch has to check.

#pragma once

#include "dialect/dsl/Trace.h"
#include "runtime/Signature.h"

namespace kiln {

/// The signature of `kernel`, traced for `facts`. Extents and strides that the traced function leaves dynamic have
/// slots. Pairs of views that the kernel only reads may overlap. Throws Error (internal) if the module lacks the
/// kernel.
Signature signatureOf(const Kernel &kernel, const Specialisation &facts, const Traced &traced);

} // namespace kiln
