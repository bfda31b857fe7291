// Accesses and what is computed between a load and a store, each beside a copy of as many bytes that the same compiler
// makes: masks, elements by their positions, additions of bytes, running sums of columns, rotated pairs. The data stay
// in a core's caches, so that instructions are measured and not memory.

#include "tools/kiln-bench/views.h"

#include <fmt/format.h>

using namespace kiln;

namespace kiln::bench {

static constexpr int64_t block = 1024;

static void copyBlocks(View x, View y) { // x, y (N)
  Tile n = program_id(0) * block;
  store(y, {n}, load(x, {n}, {block}));
}
static void copyBelow(View x, View y, Tile count) { // x, y (N)
  Tile n = program_id(0) * block, below = n + iota(block, i64) < count;
  store(y, {n}, load(x, {n}, {block}, {.mask = below}), {.mask = below});
}
static void copyChosen(View x, View chosen, View y) { // x, y, chosen (N)
  Tile n = program_id(0) * block, mask = load(chosen, {n}, {block});
  store(y, {n}, load(x, {n}, {block}, {.mask = mask}), {.mask = mask});
}
static void takeElements(View x, View positions, View y) { // positions, y (N)
  Tile n = program_id(0) * block;
  store(y, {n}, load(x, {load(positions, {n}, {block})}));
}
static void addBlocks(View x, View z, View y) { // x, z, y (N)
  Tile n = program_id(0) * block;
  store(y, {n}, load(x, {n}, {block}) + load(z, {n}, {block}));
}
static void copyTiles(View x, View y) { // x, y (64 T, C)
  const int64_t columns = x.extent(1);
  Tile m = program_id(0) * 64;
  store(y, {m, 0}, load(x, {m, 0}, {64, columns}));
}
static void sumColumns(View x, View y) { // x, y (64 T, C)
  const int64_t columns = x.extent(1);
  Tile m = program_id(0) * 64;
  store(y, {m, 0}, cast(cumsum(load(x, {m, 0}, {64, columns}), 0), y.type()));
}
static void interleaveRows(View x, View y) { // x (P, 2, 512), y (1024 P)
  Tile p = program_id(0);
  Tile low = reshape(load(x, {p, 0, 0}, {1, 1, 512}), {512}), high = reshape(load(x, {p, 1, 0}, {1, 1, 512}), {512});
  store(y, {p * 1024}, interleave(low, high));
}
static void rotate(View x, View cosines, View sines, View y) { // x, y (T, 64), cosines, sines (T, 32)
  Tile t = program_id(0) * 32;
  auto [a, b] = split(reshape(load(x, {t, 0}, {32, 64}), {32, 32, 2}));
  Tile cosine = load(cosines, {t, 0}, {32, 32}), sine = load(sines, {t, 0}, {32, 32});
  store(y, {t, 0}, interleave(a * cosine - b * sine, a * sine + b * cosine));
}

static const Kernel copyKernel = kernel("copy_blocks", copyBlocks), belowKernel = kernel("copy_below", copyBelow),
                    chosenKernel = kernel("copy_chosen", copyChosen), takeKernel = kernel("take", takeElements),
                    addKernel = kernel("add_blocks", addBlocks), tilesKernel = kernel("copy_tiles", copyTiles),
                    columnsKernel = kernel("sum_columns", sumColumns), rotateKernel = kernel("rotate", rotate),
                    interleaveKernel = kernel("interleave", interleaveRows);

/// Bytes that are all true.
static Tensor ones(const Setting &setting, int64_t count) {
  Tensor tensor = zeroTensor(setting, {count}, boolean);
  tensor.upload(std::vector<char>(count, 1).data(), tensor.bytes());
  return tensor;
}
/// Numbers that are spread over [0, count), each once.
static Tensor scattered(const Setting &setting, int64_t count) {
  Tensor tensor = zeroTensor(setting, {count}, i32);
  std::vector<int32_t> numbers(count);
  for (int64_t i = 0; i < count; ++i)
    numbers[i] = static_cast<int32_t>(i * 2654435761 % count); // count is a power of two, the factor odd
  tensor.upload(numbers.data(), tensor.bytes());
  return tensor;
}

/// A copy of as many bytes as `bytes`, which are read and written in all.
static Runner copyOfBytes(const Setting &setting, const Tensor &from, const Tensor &to, int64_t bytes) {
  const int64_t count = bytes / 2 / static_cast<int64_t>(bytesOf(from.type()));
  return repeated(setting, copyKernel, count / block, {shaped(from, {count}), shaped(to, {count})});
}

void measureAccesses(Setting &setting, Type type) {
  const int64_t count = int64_t(1) << 15, programs = count / block, size = bytesOf(type);
  const Tensor from = zeroTensor(setting, {2 * count}, type), to = zeroTensor(setting, {2 * count}, type);
  const Tensor chosen = ones(setting, count), other = zeroTensor(setting, {count}, type);
  const Tensor sines = zeroTensor(setting, {count / 2}, type);
  const Shape flat = {count}, wide = {count / 512, 512}, narrow = {count / 128, 128};
  const auto of = [&](const Shape &shape) { return std::vector<Arg>{shaped(from, shape), shaped(to, shape)}; };
  const auto add = [&](const char *name, Runner runner, int64_t bytes) {
    const std::vector<double> seconds = setting.measure({std::move(runner), copyOfBytes(setting, from, to, bytes)});
    addRow(setting, fmt::format("{}, {} elements", name, count), seconds, "copy", type);
  };
  add("mask of positions", repeated(setting, belowKernel, programs, {shaped(from, flat), shaped(to, flat), count}),
      2 * count * size);
  add("mask in memory", repeated(setting, chosenKernel, programs, {shaped(from, flat), chosen.ref(), shaped(to, flat)}),
      count * (2 * size + 1));
  add("addition", repeated(setting, addKernel, programs, {shaped(from, flat), other.ref(), shaped(to, flat)}),
      3 * count * size);
  add("interleave", repeated(setting, interleaveKernel, programs, {shaped(from, {programs, 2, 512}), shaped(to, flat)}),
      2 * count * size);
  add("sums of 512 columns", repeated(setting, columnsKernel, wide[0] / 64, of(wide)), 2 * count * size);
  add("sums of 128 columns", repeated(setting, columnsKernel, narrow[0] / 64, of(narrow)), 2 * count * size);
  if (type == f32)
    add("rotated pairs",
        repeated(setting, rotateKernel, count / 2048,
                 {shaped(from, {count / 64, 64}), shaped(other, {count / 64, 32}), shaped(sines, {count / 64, 32}),
                  shaped(to, {count / 64, 64})}),
        3 * count * size);
}

void measureTakes(Setting &setting) {
  for (const int64_t count : {int64_t(1) << 11, int64_t(1) << 20}) {
    const Tensor from = zeroTensor(setting, {count}), to = zeroTensor(setting, {count});
    const Tensor positions = scattered(setting, count);
    const std::vector<double> seconds =
        setting.measure({repeated(setting, takeKernel, count / block, {from.ref(), positions.ref(), to.ref()})});
    setting.report.add({.bench = "views",
                        .shape = fmt::format("take {} elements", count),
                        .metric = "ns_per_element",
                        .value = seconds[0] * 1e9 / static_cast<double>(count * repeats(setting))});
  }
}

} // namespace kiln::bench
