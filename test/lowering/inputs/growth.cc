// Kernels with many repetitions of one operation, each kind under its name.

#include "dialect/dsl/Kernel.h"

using namespace kiln;

struct GrowthConfig {
  int times = 1;
};

/// The operations of one step, on a tile of numbers or with a tile of positions.
using Step = void (*)(View x, View y, Tile &numbers, Tile &positions, int time);

template <Step step> static void grow(View x, View y, GrowthConfig cfg) {
  Tile numbers = load(x, {0}, {256}), positions = iota(256);
  for (int time = 0; time < cfg.times; ++time)
    step(x, y, numbers, positions, time);
  store(y, {0}, numbers);
}
template <Step step> static Kernel kernelOf(const char *name) {
  return kernel(name, grow<step>, {"x", "y"}, {field("times", &GrowthConfig::times)});
}

static void chain(View, View, Tile &a, Tile &, int) { a = a * 0.5f + a; }
static void loads(View x, View, Tile &a, Tile &, int time) { a = a + load(x, {time}, {256}); }
static void copies(View x, View y, Tile &, Tile &, int time) { store(y, {256 * time}, load(x, {256 * time}, {256})); }
static void scans(View, View, Tile &a, Tile &, int) { a = cumsum(a, 0); }
static void sums(View, View, Tile &a, Tile &, int) { a = a - sum(a); }
static void masks(View, View, Tile &a, Tile &i, int time) { a = where(i < time, a, a + 1.0f); }
static void casts(View, View, Tile &a, Tile &, int) { a = cast(cast(a, bf16), f32) * 1.5f; }
static void atomics(View, View y, Tile &a, Tile &, int time) { atomic_add(y, {time}, a); }
static void scalars(View, View y, Tile &, Tile &i, int time) { store(y, {time}, cast(sum(i) * time, f32)); }
static void branches(View, View y, Tile &a, Tile &i, int time) {
  if_(sum(i) < time, [&] { store(y, {time}, a); });
}

static void gathers(View x, View, Tile &a, Tile &i, int time) { a = a + load(x, {i * (time + 2)}); }
static void scatters(View, View y, Tile &a, Tile &i, int time) { store(y, {i * (time + 2)}, a); }
static void exponentials(View, View, Tile &a, Tile &, int) { a = exp(a); }

const Kernel kernels[] = {kernelOf<chain>("chain"),
                          kernelOf<loads>("loads"),
                          kernelOf<copies>("copies"),
                          kernelOf<scans>("scans"),
                          kernelOf<sums>("sums"),
                          kernelOf<masks>("masks"),
                          kernelOf<casts>("casts"),
                          kernelOf<atomics>("atomics"),
                          kernelOf<scalars>("scalars"),
                          kernelOf<branches>("branches"),
                          kernelOf<gathers>("gathers"),
                          kernelOf<scatters>("scatters"),
                          kernelOf<exponentials>("exponentials")};
