// Operands that no function accepts, one a CASE. Without a CASE: operands that each accepts.

#include "dialect/dsl/Kernel.h"

using namespace kiln;

void takes(View a, View b) {
  Tile n = 0, x = load(a, {n, 0}, {4, 8}), mask = x < 0;
  const Shape shape = {4, 8};
  const std::vector<At> offsets = {n, 0};
  const size_t width = 8;
  const short height = 4;

#if CASE == 1
  x = load(a, {n, 0}, {4, 8}, mask);
#elif CASE == 2
  x = load(a, {n, 0}, {4, 8}, 0.0);
#elif CASE == 3
  x = load(a, {iota(4), 0}, {8}, mask, 0);
#elif CASE == 4
  store(a, {n, 0}, x, mask);
#elif CASE == 5
  store(a, {n, 0}, {4, 8}, x);
#elif CASE == 6
  store(a, {iota(4), 0}, x, mask);
#elif CASE == 7
  x = atomic_add(a, {n, 0}, x, mask);
#elif CASE == 8
  x = load(a, {n, 0}, {4, a.dim(1)});
#elif CASE == 9
  x = zeros(f32, {n});
#elif CASE == 10
  x = reshape(x, {0.5});
#elif CASE == 11
  x = x + iota(a.dim(1));
#elif CASE == 12
  x = a[n];
#elif CASE == 13
  x = x[0];
#elif CASE == 14
  x = load(a, n, {8});
#elif CASE == 15
  store(a, n, x);
#elif CASE == 16
  x = atomic_add(a, 0, x);
#elif CASE == 17
  x = expand(x, 0);
#elif CASE == 18
  x = take(x, iota(4), 1);
#elif CASE == 19
  x = gather(a, iota(4), {0}, {8});
#elif CASE == 20
  scatter(a, iota(4), {}, x);
#elif CASE == 21
  when(n > 0, [&] { x = x + 1; }, [&] { x = x + 2; });
#elif CASE == 22
  break_when(n > 0);
#elif CASE == 23
  check(mask, "expected numbers below 0");
#elif CASE == 24
  x = zeros(f32, {ceildiv(17, 4)});
#elif CASE == 25
  x = load(a, {n, 0}, {4, 8}, {.mask = mask, .other = 0.0});
#elif CASE == 26
  x = load(a, {n + iota(0, 64), 0}, {});
#elif CASE == 27
  x = load(a, {iota(n, n + 64), 0}, {});
#elif CASE == 28
  x = load(a, {arange(0, 64), 0}, {});
#elif CASE == 29
  x = maximum(x, 0.0);
#elif CASE == 30
  x = minimum(x, x);
#elif CASE == 31
  x = max(x);
#elif CASE == 32
  x = min(x);
#endif

  x = load(a, {n, 0}, shape, Padding::inf) + load(a, offsets, {height, width}) +
      load(a, {0, 0}, {}, Padding::nan, here());
  x = zeros(f32, Shape(2, 8)) + full(f32, {8}, n) + iota(width, i64) + constant(f32, {2}, {1, 2});
  x = load(a, {iota(4), 0}, {8}) + reshape(x, {2, 16}) + broadcast(x, {4, 8});
  store(a, {n, 0}, 1);
  store(a, offsets, x, {}, here());
  store(a, {n, 0}, x, {.mask = mask});
  x = load(a, {n, 0}, {4, 8}, {.mask = mask}) + load(a, {n, 0}, {4, 8}, {Padding::nan, mask});
  store(a, {iota(4), 0}, x);
  x = atomic_add(a, {n, 0}, 1, Order::acquire);
}

#ifndef CASE
// A kernel may have its own functions of that name.
namespace own {
Tile maximum(At x, At y) { return max(x, y); }
Tile max(At x) { return reduce_max(x, 0); }
void check(const Tile &value, int limit) { device_assert(value < limit, "expected a small number"); }
Tile expand(At x, At axes) { return x + axes; }
template <class F> void when(bool holds, F f) {
  if (holds)
    f();
}
void uses(View a) {
  Tile x = load(a, {0, 0}, {4, 8});
  check(max(x), 4);
  when(true, [&] { x = maximum(expand(x, 1), 0); });
}
} // namespace own
#endif
