// Chapter 10: a race between programs, rows out of bounds and padding, and the tools that find them.

#include <kiln/dialect/dsl/Kernel.h>

using namespace kiln;

struct DebuggingConfig {
  int block = 64; // elements a program
};

// count += the number of elements of x above 0, with a race: two programs may read one old count, and one sum is lost.
static void countRacy(View x, View count, DebuggingConfig cfg) {
  Tile n = program_id() * cfg.block;
  Tile positive = load(x, {n}, {cfg.block}) > 0; // (BLOCK)
  Tile part = sum(positive);                     // the program's share
  Tile old = load(count, {0});
  store(count, {0}, old + part);
}
const Kernel countRacyKernel = kernel("count_racy", countRacy, {"x (N)", "count (1) i32"},
                                      {field("block", &DebuggingConfig::block, "elements a program")});

// The same without the race: an atomic reads, adds and writes in one step.
static void count(View x, View count, DebuggingConfig cfg) {
  Tile n = program_id() * cfg.block;
  Tile positive = load(x, {n}, {cfg.block}) > 0; // (BLOCK)
  Tile part = sum(positive);
  atomic_add(count, {0}, part);
}
const Kernel countKernel =
    kernel("count", count, {"x (N)", "count (1) i32"}, {field("block", &DebuggingConfig::block, "elements a program")});

// out[n] = table[token[n]], one token a program. A row out of bounds reads zeros, so it is asserted.
static void embed(View tokens, View table, View out) {
  const int64_t C = table.extent(1);
  Tile n = program_id();
  Tile token = load(tokens, {n});
  print("token", token);
  device_assert(token >= 0 & token < table.dim(0), "the token is in the table");
  store(out, {n, 0}, load(table, {token, 0}, {C})); // (C)
}
const Kernel embedKernel = kernel("embed", embed, {"tokens (N) i32", "table (V, C)", "out (N, C)"});

// The maximum of each row. A tile is wider than a row, and its rest must not win: it reads −∞ and not 0.
static void rowMaximum(View x, View out, DebuggingConfig cfg) {
  Tile n = program_id();
  Tile row = load(x, {n, 0}, {cfg.block}, Padding::neg_inf); // (BLOCK)
  store(out, {n}, reduce_max(row));
}
const Kernel rowMaximumKernel = kernel("row_maximum", rowMaximum, {"x (N, C)", "out (N)"},
                                       {field("block", &DebuggingConfig::block, "elements of a row, at least C")});

// Fills x with normal random numbers.
static void inputs(View x, Tile seed, DebuggingConfig cfg) {
  Tile n = program_id() * cfg.block;
  store(x, {n}, random_normal(seed, n + iota(cfg.block, i64)));
}
const Kernel inputsKernel = kernel("inputs", inputs, {"x (N) f32", "seed i64"},
                                   {field("block", &DebuggingConfig::block, "elements a program")});
