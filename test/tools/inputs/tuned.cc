// Kernels with fields to tune: one that is right for every candidate, one that is not, one that some do not compile
// for.

#include "dialect/dsl/Plan.h"

using namespace kiln;

struct ScaleConfig {
  int block = 32;
  bool twice = false; // two loads instead of one
};
static void scale(View x, View out, ScaleConfig cfg) {
  Tile n = program_id() * cfg.block;
  Tile value = load(x, {n}, {cfg.block}); // (block)
  if (cfg.twice)
    value = (value + load(x, {n}, {cfg.block})) * 0.5;
  store(out, {n}, value * 3.0);
}
const Kernel scaleKernel =
    kernel("scale", scale, {"x (N)", "out (N)"},
           {field("block", &ScaleConfig::block, "elements a program").among({64, 128, 512, 4096}),
            field("twice", &ScaleConfig::twice, "loads twice").among({true})},
           [](const ScaleConfig &cfg, const Target &) { return cfg.block <= 1024; });

struct SumConfig {
  int chunk = 4;
};
static void sums(View x, View out, SumConfig cfg) { // wrong: the result depends on the field
  store(out, {0}, sum(load(x, {0}, {cfg.chunk})));
}
const Kernel wrongKernel =
    kernel("wrong", sums, {"x (N)", "out (1)"}, {field("chunk", &SumConfig::chunk, "summed").among({8, 33554432})});
const Kernel changingKernel =
    kernel("changing", sums, {"x (N)", "out (1)"}, {field("chunk", &SumConfig::chunk, "summed").among({8}).changing()});

struct ChunkConfig {
  int chunk = 4;
};
static void chunked(View x, View out, ChunkConfig cfg) { // right; the order of the sums depends on the field
  Tile n = program_id() * 8;
  Tile total = zeros(f32, {8}); // (8)
  for (Tile k : range(0, 64, cfg.chunk))
    total += sum(load(x, {n, k}, {8, cfg.chunk}), -1);
  store(out, {n}, cast(total, out.type()));
}
const Kernel chunkedKernel = kernel("chunked", chunked, {"x (N, 64)", "out (N), sums of rows"},
                                    {field("chunk", &ChunkConfig::chunk, "summed at once").among({64})});

struct PartConfig {
  int rows = 32; // elements a program
  int chunk = 4; // elements of a partial sum
};
static void parts(View x, View out, PartConfig cfg) { // right, if the grid covers x
  Tile n = program_id() * cfg.rows;
  Tile total = zeros(f32, {cfg.rows}); // (rows)
  for (Tile k : range(0, 64, cfg.chunk))
    total += cast(k, f32) * load(x, {n}, {cfg.rows});
  store(out, {n}, total);
}
const Kernel partsKernel = kernel("parts", parts, {"x (N)", "out (N)"},
                                  {field("rows", &PartConfig::rows, "elements a program").among({8}),
                                   field("chunk", &PartConfig::chunk, "of a sum").among({8}).changing()});

struct WalkConfig {
  int rows = 1; // rows of a program, which has 128 elements of the result
};
static void walk(View x, View out, WalkConfig cfg) { // a row takes more instructions, a column 8 times the sectors
  const int64_t rows = cfg.rows, columns = 128 / rows;
  Tile m = program_id(0) * rows, n = program_id(1) * columns;
  Tile total = zeros(f32, {rows, columns}); // (rows, columns)
  for (Tile k : range(n, x.dim(1), out.dim(1))) {
    Tile value = load(x, {m, k}, {rows, columns}); // (rows, columns)
    total += rows == 1 ? value * 2.0 * 0.5 : value;
  }
  store(out, {m, n}, total);
}
const Kernel walkKernel = kernel("walk", walk, {"x (M, K)", "out (M, N), sums of every N-th column"},
                                 {field("rows", &WalkConfig::rows, "of a program").among({128})});

struct RepeatConfig {
  int times = 1;
};
static void repeats(View x, View out, RepeatConfig cfg) {
  Tile n = program_id() * 1024;
  for (Tile i : range(cfg.times))
    store(out, {n}, load(x, {n}, {1024}) + cast(i - i, f32));
}
const Kernel repeatsKernel = kernel("repeats", repeats, {"x (N)", "out (N), x"},
                                    {field("times", &RepeatConfig::times, "that it is stored").among({64})});

struct PairsConfig {
  int factor = 1;
};
static void pairs(View x, View out, PairsConfig cfg) { // wrong: the result depends on the field
  store(out, {0}, pack(load(x, {0}, {64}) * cfg.factor));
}
const Kernel pairsKernel =
    kernel("pairs", pairs, {"x (N)", "out"}, {field("factor", &PairsConfig::factor, "multiplied").among({8})});

static void positive(View x, View out) {
  Tile n = program_id() * 32;
  store(out, {n}, load(x, {n}, {32}) > 0);
}
const Kernel positiveKernel = kernel("positive", positive, {"x (N)", "out (N)"});

const Kernel plainKernel = kernel("plain", sums, {"x (N)", "out (1)"}, {field("chunk", &SumConfig::chunk, "summed")});
