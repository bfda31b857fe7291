// A kernel that forgets to store, and one that only asserts.

#include "dialect/dsl/Kernel.h"

using namespace kiln;

static void forgets(View x, View y) {
  Tile n = program_id(0) * 64;
  Tile sums = load(x, {n}, {64}) + load(y, {n}, {64});
}
static void asserts(View x) { device_assert(load(x, {0}, {64}) < 2, "expected small numbers"); }
const Kernel forgetsKernel = kernel("forgets", forgets, {"x (N)", "y (N)"});
const Kernel assertsKernel = kernel("asserts", asserts, {"x (N)"});
