// Blocks that begin at positions read from memory: with a promise that these are multiples of 16, and without one.

#include "dialect/dsl/Kernel.h"

using namespace kiln;

void copyAssumed(View starts, View x, View y) {
  const Tile n = program_id(0), first = load(starts, {n});
  assume(first % 16 == 0);
  store(y, {n * 512}, load(x, {first}, {512}));
}
const Kernel copyAssumedKernel = kernel("copy_assumed", copyAssumed);

void copyAnywhere(View starts, View x, View y) {
  const Tile n = program_id(0), first = load(starts, {n});
  store(y, {n * 512}, load(x, {first}, {512}));
}
const Kernel copyAnywhereKernel = kernel("copy_anywhere", copyAnywhere);
