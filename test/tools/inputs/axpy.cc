// Kernels to be launched on files: one with named arguments, one whose check fails below 0.

#include "dialect/dsl/Kernel.h"

using namespace kiln;

static void axpy(View x, View y, Tile alpha) {
  Tile n = program_id(0) * 4;
  store(y, {n}, load(y, {n}, {4}) + alpha * load(x, {n}, {4}));
}
const Kernel axpyKernel = kernel("axpy", axpy, {"x (N)", "y (N)", "alpha"});

static void root(View x, View y) {
  Tile value = load(x, {0}, {4});
  device_assert(value >= 0.0, "x is negative");
  store(y, {0}, sqrt(value));
}
const Kernel rootKernel = kernel("root", root, {"x", "y"});
