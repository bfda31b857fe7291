// Throws while it is loaded.

#include "dialect/dsl/Kernel.h"

#include <stdexcept>

using namespace kiln;

void nothing(View x) {}
const Kernel nothingKernel = kernel("nothing", nothing);
const int early = [] { return throw std::runtime_error("expected a table, but found none"), 0; }();
