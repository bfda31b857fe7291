// Kernels for new tensors of --run: what is in them decides positions, numbers of iterations, or values alone.

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

// The sum of the first numbers, as many as `length` says.
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
