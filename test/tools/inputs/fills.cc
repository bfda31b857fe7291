// Kernels for new tensors of --run: their content decides positions, numbers of iterations, or values alone.

#include "dialect/dsl/Kernel.h"

using namespace kiln;

// Copies views of any type.
static void copy(View x, View out) { store(out, {0}, load(x, {0}, {64})); }
const Kernel copyKernel = kernel("copy", copy, {"x (64)", "out (64)"});

// The difference of two tensors.
static void minus(View x, View y, View out) { store(out, {0}, load(x, {0}, {64}) - load(y, {0}, {64})); }
const Kernel minusKernel = kernel("minus", minus, {"x (64)", "y (64)", "out (64)"});

// Rows of a table, and which rows they are.
static void rows(View index, View table, View out, View used) {
  Tile row = load(index, {0}, {64}); // (64)
  store(out, {0, 0}, load(table, {row, 0}, {4}));
  store(used, {0}, row);
}
const Kernel rowsKernel = kernel("rows", rows, {"index (64) i32", "table (N, 4)", "out (64, 4)", "used (64) i32"});

// Elements by position along an axis.
static void elements(View index, View out, View used) {
  Tile at = load(index, {0}, {64}); // (64)
  store(out, {0}, gather(iota(16), at));
  store(used, {0}, at);
}
const Kernel elementsKernel = kernel("elements", elements, {"index (64) i32", "out (64) i32", "used (64) i32"});

// How often each number from 0 to 31 is there.
static void counts(View numbers, View out, View used) {
  Tile all = load(numbers, {0}, {64}); // (64)
  store(out, {0}, histogram(all, 32));
  store(used, {0}, all);
}
const Kernel countsKernel = kernel("counts", counts, {"numbers (64) i32", "out (32) i32", "used (64) i32"});

// Rows of two tables, by one index.
static void both(View index, View a, View b, View out, View used) {
  Tile row = load(index, {0}, {64});  // (64)
  Tile left = load(a, {row, 0}, {4}); // (64, 4)
  store(out, {0, 0}, left + load(b, {row, 0}, {4}));
  store(used, {0}, row);
}
const Kernel bothKernel =
    kernel("both", both, {"index (64) i32", "a (M, 4)", "b (N, 4)", "out (64, 4)", "used (64) i32"});

// The sum of the first `length` numbers; `length` grows by one.
static void claim(View length, View x, View out) {
  Tile total = zeros(f32, {});
  for (Tile n : range(0, load(length, {0}), 1))
    total = total + load(x, {n});
  store(out, {0}, total);
  atomic_add(length, {0}, Tile(1));
}
const Kernel claimKernel = kernel("claim", claim, {"length (1) i64", "x (N)", "out (1)"});

// The sum of the first `length` numbers.
static void first(View length, View x, View out) {
  Tile total = zeros(f32, {});
  for (Tile n : range(0, load(length, {0}), 1))
    total = total + load(x, {n});
  store(out, {0}, total);
}
const Kernel firstKernel = kernel("first", first, {"length (1) i64", "x (N)", "out (1)"});

// Every program stores its number of x to one place.
static void last(View x, View out) { store(out, {3, 60}, load(x, {program_id()})); }
const Kernel lastKernel = kernel("last", last, {"x (N)", "out (M, N)"});
