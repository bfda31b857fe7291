// A kernel for archives whose programs wait for each other.

#include <kiln/dialect/dsl/Kernel.h>

using namespace kiln;

static void waits(View flags) {
  const Tile n = program_id(0), before = n - 1;
  if_(before >= 0, [&] {
    for (Tile tries : repeat_while([&] { return atomic_load(flags, {before}) == 0; })) {
    }
  });
  atomic_store(flags, {n}, full(i32, {}, 1));
}
const Kernel waitsKernel = kernel("waits", waits, {"flags (N)"});
