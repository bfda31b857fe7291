// A kernel in a file that holds HTML: </script><script>throw "not escaped"</script> <b>&amp; 'quotes'</b> {{DATA}}

#include "dialect/dsl/Kernel.h"

using namespace kiln;

static void scaleRows(View x, View out, Tile factor) {
  Tile n = program_id(0) * 4;
  Tile row = load(x, {n, 0}, {4, 64}); // (4, 64)
  store(out, {n, 0}, row * factor);
}
const Kernel scaleRowsKernel = kernel("scale_rows", scaleRows, {"x (N, 64)", "out (N, 64)", "factor"});

// All programs store to one place.
static void race(View out) { store(out, {0}, full(i64, {4}, 1) * program_id(0)); }
const Kernel raceKernel = kernel("race", race, {"out"});
