// Two atomics in one expression, and in two statements.

#include "dialect/dsl/Kernel.h"

using namespace kiln;
void effects(View count, View out) {
  store(out, {0}, atomic_add(count, {0}, 1) - atomic_add(count, {0}, 10));
  Tile first = atomic_add(count, {0}, 1);
  Tile second = atomic_add(count, {0}, 10);
  store(out, {1}, first - second);
}
const Kernel effectsKernel = kernel("effects", effects);
