// A persistent kernel with two loops over K for each tile.

#include "dialect/dsl/Kernel.h"

using namespace kiln;

static void twoLoops(View a, View b, View c) {
  for (Tile tile : range(program_id(0), cdiv(c.dim(0), 64), num_programs(0))) {
    Tile acc = zeros(f32, {64, 64}); // (64, 64)
    for (View right : {a, b})
      for (Tile k : range(0, a.dim(1), 32))
        acc = dot(load(a, {tile * 64, k}, {64, 32}), transpose(load(right, {0, k}, {64, 32})), acc);
    store(c, {tile * 64, 0}, acc);
  }
}
static const Kernel twoLoopsKernel = kernel("two_loops", twoLoops, {"a", "b", "c"});
