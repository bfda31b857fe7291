// Operations with special instructions: orders of atomics, cache hints, products of 8-bit floats.
#include "dialect/dsl/Kernel.h"

using namespace kiln;

static void orders(View flags, View x) {
  Tile seen = atomic_load(flags, {0});
  store(x, {0}, load(x, {0}, {256}) + 1);
  atomic_add(flags, {1}, 1, Order::release);
  atomic_add(flags, {2}, 1, Order::acquire);
  Tile before = atomic_add(flags, {3}, seen, Order::acq_rel);
  Tile was = atomic_compare_exchange(flags, {4}, before, 1);
  atomic_exchange(flags, {5}, was, Order::release);
  atomic_store(flags, {6}, 1);
  atomic_add(flags, {8}, full(i32, {512}, 1), Order::acq_rel); // several a thread
}
static const Kernel ordersKernel = kernel("orders", orders, {"flags", "x"});

static void caches(View a, View b, View c, View d) {
  Tile acc = zeros(f32, {64, 64});
  for (Tile k : range(0, a.dim(1), 32))
    acc = dot(load(a, {0, k}, {64, 32}, {.cache = Cache::evict_first}),
              load(b, {k, 0}, {32, 64}, {.cache = Cache::evict_last}), acc);
  store(c, {0, 0}, acc + load(d, {0, 0}, {64, 64}, {.cache = Cache::evict_last}), {.cache = Cache::evict_first});
}
static const Kernel cachesKernel = kernel("caches", caches, {"a", "b", "c", "d"});

static void widths(View x, View ids, View y) {
  Tile named = load(ids, {0}, {256}, {.cache = Cache::evict_first});
  Tile some = load(x, {named}, {}, {.mask = named > 3, .cache = Cache::evict_last});
  store(y, {named}, some, {.mask = named < 99, .cache = Cache::evict_first});
  store(y, {0}, load(y, {1000}, {256}, {.cache = Cache::evict_first}),
        {.cache = Cache::evict_last}); // read and written
}
static const Kernel widthsKernel = kernel("widths", widths, {"x", "ids", "y"});

struct BytesConfig {
  bool permits = false;
};
static void bytes(View a, View b, View c, BytesConfig cfg) {
  Tile acc = zeros(f32, {64, 64});
  for (Tile k : range(0, a.dim(1), 64))
    acc =
        dot(load(a, {0, k}, {64, 64}), load(b, {k, 0}, {64, 64}), acc, cfg.permits ? Precision::tf32 : Precision::ieee);
  store(c, {0, 0}, acc);
}
static const Kernel bytesKernel = kernel("bytes", bytes, {"a", "b", "c"}, {field("permits", &BytesConfig::permits)});
