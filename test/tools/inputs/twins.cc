// Two kernels of one name, and one of another.

#include "dialect/dsl/Kernel.h"

using namespace kiln;

void nothing(View x) {}
const Kernel nothingKernel = kernel("nothing", nothing);
const Kernel againKernel = kernel("nothing", nothing);
const Kernel thirdKernel = kernel("third", nothing);
