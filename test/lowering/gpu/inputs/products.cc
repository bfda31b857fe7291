// Loops whose products wait for each other in several ways.

#include <kiln/dialect/dsl/Kernel.h>
using namespace kiln;

// A product of rows in registers comes before one of two tiles in shared memory.
void rows_first(View q, View k, View x, View w, View out, View best) {
  Tile a = load(q, {0, 0}, {64, 64}), sums = zeros(f32, {64, 64}), most = zeros(f32, {64});
  for (Tile n : range(0, k.dim(0), 64)) {
    Tile scores = dot(a, transpose(load(k, {n, 0}, {64, 64})), zeros(f32, {64, 64}));
    most = max(most, reduce_max(scores, 1));
    sums = dot(load(x, {0, n}, {64, 64}), load(w, {n, 0}, {64, 64}), sums);
  }
  store(out, {0, 0}, sums);
  store(best, {0}, most);
}
const Kernel rowsFirstKernel = kernel("rows_first", rows_first);

// The first product adds to the result of the last one of the iteration before.
void recurrence(View q, View k, View v, View out) {
  Tile a = load(q, {0, 0}, {64, 64}), sums = zeros(f32, {64, 64});
  for (Tile n : range(0, k.dim(0), 64)) {
    Tile scores = dot(a, transpose(load(k, {n, 0}, {64, 64})), sums);
    sums = dot(cast(scores, bf16), load(v, {n, 0}, {64, 64}), zeros(f32, {64, 64}));
  }
  store(out, {0, 0}, sums);
}
const Kernel recurrenceKernel = kernel("recurrence", recurrence);

// Ten products begin before the first result is used; a wait leaves at most seven pending.
void many(View q, View k, View out) {
  Tile a = load(q, {0, 0}, {64, 64}), sums = zeros(f32, {64, 16});
  for (Tile n : range(0, k.dim(0), 160)) {
    std::vector<Tile> products;
    for (int i = 0; i < 10; ++i)
      products.push_back(dot(a, transpose(load(k, {n + 16 * i, 0}, {16, 64})), zeros(f32, {64, 16})));
    for (const Tile &each : products)
      sums = sums + each;
  }
  store(out, {0, 0}, sums);
}
const Kernel manyKernel = kernel("many", many);

// Some registers of an operand are known before any product of the iteration.
void known_early(View q, View k, View v, View x, View out) {
  Tile a = load(q, {0, 0}, {64, 64}), sums = zeros(f32, {64, 64});
  for (Tile n : range(0, k.dim(0), 64, {.stages = 3})) {
    Tile scores = dot(a, transpose(load(k, {n, 0}, {64, 64})), zeros(f32, {64, 64}));
    Tile mixed = where(unsqueeze(iota(64), 0) < 32, cast(scores, bf16), load(x, {0, n}, {64, 64}));
    sums = dot(mixed, load(v, {n, 0}, {64, 64}), sums);
  }
  store(out, {0, 0}, sums);
}
const Kernel knownEarlyKernel = kernel("known_early", known_early);
