// Mistakes that the C++ compiler refuses. `// error: …` above a line has a part of the line's first error; no other
// line has an error.

#include "dialect/dsl/Kernel.h"

#include <cmath>
#include <cstdio>

using namespace kiln;

void takes(View a, View b) {
  Tile n = 0, x = load(a, {n, 0}, {4, 8}), y = x + 1, mask = x < 0;
  const Shape shape = {4, 8};
  const std::vector<At> offsets = {n, 0};
  const size_t width = 8;
  const short height = 4;

#ifdef MISTAKES
  float *pointer = nullptr;

  // --- A mask, or a number for what lies outside -------------------------------------------------------------------
  // error: a load's mask stands in braces, load(view, {n}, {64}, {.mask = m}), and there is no other value: elements
  x = load(a, {n, 0}, {4, 8}, mask);
  // error: a load's mask stands in braces
  x = load(a, {n, 0}, {4, 8}, 0.0);
  // error: a load's mask stands in braces
  x = load(a, {iota(4), 0}, {8}, mask, 0);
  // error: a load's mask stands in braces
  x = load(a, {iota(4), 0}, mask);
  // error: a load's mask stands in braces
  x = load(a, {n, 0}, {4, 8}, {mask});
  // error: a store takes a view, its offsets and a value, which brings its own shape; a mask stands in braces:
  store(a, {n, 0}, x, mask);
  // error: a store takes a view, its offsets and a value
  store(a, {n, 0}, {4, 8}, x);
  // error: a store takes a view, its offsets and a value
  store(a, {iota(4), 0}, x, mask);
  // error: a store takes a view, its offsets and a value
  x = atomic_add(a, {n, 0}, x, mask);

  // --- One view is accessed at a time ------------------------------------------------------------------------------
  const std::optional<View> bias = a;
  const std::vector<View> views = {a, b};
  // error: an optional view is accessed as *bias, after if (bias), and a list of views by its elements, xs[i] or for
  x = load(bias, {n, 0}, {4, 8});
  // error: an optional view is accessed as *bias, after if (bias), and a list of views by its elements, xs[i] or for
  x = load(views, {n, 0}, {4, 8}, {.mask = mask});
  // error: an optional view is accessed as *bias, after if (bias), and a list of views by its elements, xs[i] or for
  store(bias, {n, 0}, x);

  // --- Shapes: an extent that only the program knows, a fraction, a number alone -----------------------------------
  // error: an extent of a tile is an integer that is known while tracing, such as a config's field, or view.extent(i)
  x = load(a, {n, 0}, {4, a.dim(1)});
  // error: an extent of a tile is an integer that is known while tracing
  x = zeros(f32, {n});
  // error: an extent of a tile is an integer that is known while tracing
  x = reshape(x, {0.5});
  // error: iota counts to an integer that is known while tracing, such as a config's field, or view.extent(i) in place
  x = x + iota(a.dim(1));
  // error: a shape is a list in braces: {64}
  x = zeros(f32, 64);
  // error: a shape is a list in braces
  x = load(a, {n, 0}, 64);

  // --- Subscripts and members --------------------------------------------------------------------------------------
  // error: a view has no elements in C++: load(view, {i, j}, shape) reads a tile that begins there, and store() writes
  x = a[n];
  // error: a view has no elements in C++
  x = a(n, 0);
  // error: a tile has no elements in C++: functions compute with all of them at once; extract(x, {0}, {4}) is a part of
  x = x[0];
  // error: a tile has no elements in C++
  x = x(0, 1);
  // error: the offsets of a view are a list in braces, one for each dimension: {n}, {m, 0}
  x = load(a, n, {8});
  // error: the offsets of a view are a list in braces
  x = load(a);
  // error: the offsets of a view are a list in braces
  store(a, n, x);
  // error: the offsets of a view are a list in braces
  store(a, x);
  // error: the offsets of a view are a list in braces
  x = atomic_add(a, 0, x);
  // error: a view is memory, and no tile: load(view, {n}, {64}) reads a tile
  x = a + x;
  // error: a view is memory, and no tile
  x = exp(a);
  // error: a tile has no such member: write cast(x, f16)
  x = x.to(f16);
  // error: a tile has no such member: write sum(x, axis)
  x = x.sum(0);
  // error: a tile has no such member: write reshape(x, {64, 32})
  x = x.reshape({8, 4});
  // error: a tile has no such member: write transpose(x)
  x = x.T;
  // error: a tile has no such member: write transpose(x)
  x = dot(x, x.T());
  // error: a tile has no such member: write x.type()
  x = cast(x, x.dtype);
  // error: a tile has no such member: write x.extent(axis)
  x = zeros(f32, {x.dim(0)});
  // error: a view has no such member: write view.dim(axis), or view.extent(axis), which is known while tracing
  n = a.shape[0];
  // error: a view has no such member: write view.dim(axis)
  n = a.shape();
  // error: a view has no such member: write view.type()
  x = cast(x, a.dtype);
  // error: a view has no such member: write load(view, {n}, {64})
  x = a.load({n, 0}, {4, 8});
  // error: a view has no such member: write store(view, {n}, x)
  a.store({n, 0}, x);

  // --- Truth values and numbers of C++ -----------------------------------------------------------------------------
  // error: a traced condition has no C++ truth value: use for (Tile i : range(0, x.dim(0), 64)) and break_if()
  for (int i = 0; i < a.dim(0); i += 4)
    store(a, {i, 0}, x);
  // error: for loops, if_(), where(), or a host bool
  if (n > 0)
    store(a, {0, 0}, x);
  // error: a traced condition has no C++ truth value
  while (n > 0)
    n = n - 1;
  // error: a traced condition has no C++ truth value
  x = mask ? x : y;
  // error: write a & b: && needs a truth value while tracing
  x = where(x < y && n > 0, x, y);
  // error: write a & b: && needs a truth value while tracing
  x = where(true && n > 0, x, y);
  // error: write a | b: || needs a truth value while tracing
  x = where(x < y || n > 0, x, y);
  // error: Tile
  bool isLess = x < y;
  // error: Tile
  for (int k : range(8))
    store(a, {k, 0}, x);
  // error: printf() of C prints no tile: write print("x", x)
  printf("%f %d\n", x, 3);
  // error: functions of tiles have no std:: before them: write exp(x), max(x, y)
  x = std::exp(x);
  // error: functions of tiles have no std:: before them
  x = std::pow(x, 2) + std::abs(y);
  // error: functions of tiles have no std:: before them
  x = std::max(x, y);
  // error: functions of tiles have no std:: before them
  x = std::min(0.0f, y);

  // --- The place of the type ---------------------------------------------------------------------------------------
  // error: the type comes first: zeros(f32, {64})
  x = zeros({4, 8}, f32);
  // error: the type comes first: zeros(f32, {64})
  x = zeros({4, 8});
  // error: the type comes first, and the value last: full(f32, {64}, 0)
  x = full({4, 8}, 0.0f);
  // error: the type comes first, and the value last
  x = full({4, 8}, 0, f32);
  // error: the type comes last: cast(x, f16)
  x = cast(f16, x);

  // --- Former names ------------------------------------------------------------------------------------------------
  // error: expand() is called unsqueeze()
  x = expand(x, 0);
  // error: take() is called gather()
  x = take(x, iota(4), 1);
  // error: gather() is for tiles: load(view, {rows, 0}, {C}) reads rows of a view
  x = gather(a, iota(4), {0}, {8});
  // error: store(view, {rows, 0}, x) writes rows of a view
  scatter(a, iota(4), {}, x);
  // error: when() is called if_()
  when(n > 0, [&] { x = x + 1; }, [&] { x = x + 2; });
  // error: break_when() is called break_if()
  break_when(n > 0);
  // error: check() is called device_assert()
  check(mask, "expected numbers below 0");
  // error: ceildiv() is called cdiv()
  x = zeros(f32, {ceildiv(17, 4)});

  // --- Options and names of Triton's -------------------------------------------------------------------------------
  // error: load has no option .other: elements outside the view or the mask read .padding, such as Padding::zero;
  x = load(a, {n, 0}, {4, 8}, {.mask = mask, .other = 0.0});
  // error: iota takes a count: iota(64) is 0 to 63, and n + iota(64) is n to n + 63
  x = load(a, {n + iota(0, 64), 0}, {});
  // error: iota takes a count
  x = load(a, {iota(n, n + 64), 0}, {});
  // error: arange() is called iota(): iota(64) is 0 to 63
  x = load(a, {arange(0, 64), 0}, {});
  // error: a tile has a value from the beginning: zeros(f32, {64})
  x = empty({4, 8}, f32);
  // error: names have no prefix tl: write load(view, {n}, {64}), dot(a, b, acc), program_id(0), f16
  x = tl.load(a);
  // error: names have no prefix tl
  n = tl::program_id(0);
  // error: maximum() is called max()
  x = maximum(x, 0.0);
  // error: minimum() is called min()
  x = minimum(x, x);
  // error: expand_dims() is called unsqueeze(): unsqueeze(x, 1) is x[:, None]
  x = expand_dims(x, 0);
  // error: broadcast_to() is called broadcast(): broadcast(x, {4, 64})
  x = broadcast_to(x, {4, 8});
  // error: permute() is called transpose(): transpose(x, {1, 0})
  x = permute(x, {1, 0});
  // error: rand() is called random(): random(seed, index)
  x = rand(7, iota(4));
  // error: atomic_cas() is called atomic_compare_exchange():
  x = atomic_cas(a, {0, 0}, 0, 1);
  // error: static_range() is the for of C++: for (int i = 0; i < 4; ++i)
  for (int i : static_range(4))
    x = x + i;
  // error: a view has extents: load(view, {m, k}, {64, 32}) reads a block at any position, without a block pointer
  x = load(make_block_ptr(a, {8, 8}, {8, 1}, {0, 0}, {4, 8}, {1, 0}), {0, 0}, {4, 8});
  // error: memory is a View, which knows its type, extents and strides: write View x, not float *x, in the parameters
  x = load(pointer, {n}, {64});
  // error: memory is a View, which knows its type
  x = load(pointer);
  // error: memory is a View, which knows its type
  x = load(pointer + n);
  // error: memory is a View, which knows its type
  store(pointer, {n}, x);

  // --- Reductions by the names of elementwise functions ------------------------------------------------------------
  // error: max(a, b) is elementwise; the largest element along an axis is reduce_max(x, axis)
  x = max(x);
  // error: min(a, b) is elementwise; the smallest element along an axis is reduce_min(x, axis)
  x = min(x);
#endif

  x = load(a, {n, 0}, shape, Padding::inf) + load(a, offsets, {height, width}) +
      load(a, {0, 0}, {}, Padding::nan, here());
  x = zeros(f32, Shape(2, 8)) + full(f32, {8}, n) + iota(width, i64) + constant(f32, {2}, {1, 2});
  x = load(a, {iota(4), 0}, {8}) + reshape(x, {2, 16}) + broadcast(x, {4, 8});
  x = where(!mask, abs(iota(4)), std::max(1.0, std::exp(2.0)));
  store(a, {n, 0}, 1);
  store(a, offsets, x, {}, here());
  store(a, {n, 0}, x, {.mask = mask});
  x = load(a, {n, 0}, {4, 8}, {.mask = mask}) + load(a, {n, 0}, {4, 8}, {Padding::nan, mask});
  store(a, {iota(4), 0}, x);
  x = atomic_add(a, {n, 0}, 1, Order::acquire);
}

#ifdef MISTAKES
Tile returns(View a, View out) { return load(a, {0}, {4}); }
// error: a kernel's function is void: it writes its result by store(out, {n}, x)
const Kernel returnsKernel = kernel("returns", returns, {"a (N)", "out (N)"});
#endif

// A kernel may have its own functions of that name.
namespace own {
Tile maximum(At x, At y) { return max(x, y); }
Tile max(At x) { return reduce_max(x, 0); }
void check(const Tile &value, int limit) { device_assert(value < limit, "expected a small number"); }
Tile expand(At x, At axes) { return x + axes; }
Tile empty(At x) { return x + 0; }
template <class F> void when(bool holds, F f) {
  if (holds)
    f();
}
void uses(View a) {
  Tile tl = empty(load(a, {0, 0}, {4, 8}));
  check(max(tl), 4);
  printf("%d\n", 4);
  when(true, [&] { tl = maximum(expand(tl, 1), 0); });
}
} // namespace own
