// Does not compile.

#include "dialect/dsl/Kernel.h"

void wrong(kiln::View x) { store(x, {0}, nowhere); }
const kiln::Kernel wrongKernel = kiln::kernel("wrong", wrong);
