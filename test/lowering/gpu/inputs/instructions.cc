// What has instructions of its own: orders of atomics.
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
