// Chapter 10: a kernel with two planted mistakes, the same kernel without them, and rows that are not there.

#include <kiln/dialect/dsl/Kernel.h>

using namespace kiln;

struct CountConfig {
  int block = 64; // elements a program
};

// count[0] += the number of zeros in x, such as activations that ReLU made 0. Two mistakes are planted.
static void countZerosWrong(View x, View count, CountConfig cfg) {
  Tile n = program_id() * cfg.block;
  Tile block = load(x, {n}, {cfg.block}); // (BLOCK)
  Tile part = sum(block == 0);
  print("part", part);
  Tile before = load(count, {0});
  store(count, {0}, before + part);
}
const Kernel countZerosWrongKernel = kernel("count_zeros_wrong", countZerosWrong, {"x (N)", "count (1) i32"},
                                            {field("block", &CountConfig::block, "elements a program")});

// count[0] += the number of zeros in x.
static void countZeros(View x, View count, CountConfig cfg) {
  Tile n = program_id() * cfg.block;
  Tile block = load(x, {n}, {cfg.block}, Padding::nan); // (BLOCK), NaN past the end: not equal to 0
  Tile part = sum(block == 0);
  device_assert(part <= x.dim(0) - n, "no more zeros than elements");
  atomic_add(count, {0}, part); // reads, adds and writes in one step
}
const Kernel countZerosKernel = kernel("count_zeros", countZeros, {"x (N)", "count (1) i32"},
                                       {field("block", &CountConfig::block, "elements a program")});

// out[n] = table[first + n]: position embeddings for a text that begins at position `first`.
static void positions(View table, View out, Tile first) {
  Tile n = program_id();
  device_assert(first + n < table.dim(0), "the position is in the table");
  store(out, {n, 0}, load(table, {first + n, 0}, {table.extent(1)})); // (C)
}
const Kernel positionsKernel = kernel("positions", positions, {"table (T, C)", "out (N, C)", "first i64"});
