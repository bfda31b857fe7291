// Members that Triton and PyTorch have and Kiln lacks, such as x.to(f16). Using one is an error at the user's line,
// whose message names the replacement. Tile.h includes this; Mistakes.h does this for functions.

#pragma once

#include "dialect/dsl/Types.h"

#include <initializer_list>

/// Makes each use of a declaration an error with this sentence. Unlike a static_assert in a template, the error is at
/// the user's line.
#define KILN_MISTAKE(sentence) __attribute__((unavailable(sentence)))

namespace kiln {

class Tile;

/// An argument of any type. If a kernel's author has a function with such a name, overload resolution prefers it.
struct AnyArgument {
  AnyArgument() = default;
  template <class T> AnyArgument(const T &) {}
  AnyArgument(std::initializer_list<AnyArgument>) {}
};

#define KILN_FUNCTION_OF_TILES(name, call)                                                                             \
  KILN_MISTAKE("a tile has no such member: write " call)                                                               \
  Tile name(AnyArgument = {}, AnyArgument = {}, AnyArgument = {}) const;

#define KILN_ELEMENTS(sentence)                                                                                        \
  template <class... Index> KILN_MISTAKE(sentence) Tile operator()(const Index &...) const;                            \
  template <class Index> KILN_MISTAKE(sentence) Tile operator[](const Index &) const;

class TileMistakes {
public:
  KILN_FUNCTION_OF_TILES(to, "cast(x, f16)")
  KILN_FUNCTION_OF_TILES(cast, "cast(x, f16)")
  KILN_FUNCTION_OF_TILES(sum, "sum(x, axis)")
  KILN_FUNCTION_OF_TILES(mean, "mean(x, axis)")
  KILN_FUNCTION_OF_TILES(max, "reduce_max(x, axis)")
  KILN_FUNCTION_OF_TILES(min, "reduce_min(x, axis)")
  KILN_FUNCTION_OF_TILES(argmax, "argmax(x, axis)")
  KILN_FUNCTION_OF_TILES(argmin, "argmin(x, axis)")
  KILN_FUNCTION_OF_TILES(abs, "abs(x)")
  KILN_FUNCTION_OF_TILES(exp, "exp(x)")
  KILN_FUNCTION_OF_TILES(reshape, "reshape(x, {64, 32})")
  KILN_FUNCTION_OF_TILES(view, "reshape(x, {64, 32})")
  KILN_FUNCTION_OF_TILES(trans, "transpose(x)")
  KILN_FUNCTION_OF_TILES(transpose, "transpose(x)")
  KILN_FUNCTION_OF_TILES(permute, "transpose(x, {1, 0})")
  KILN_FUNCTION_OF_TILES(broadcast_to, "broadcast(x, {64, 32})")
  KILN_FUNCTION_OF_TILES(expand_dims, "unsqueeze(x, axis)")
  KILN_FUNCTION_OF_TILES(unsqueeze, "unsqueeze(x, axis)")
  KILN_FUNCTION_OF_TILES(dim, "x.extent(axis)")
  KILN_FUNCTION_OF_TILES(size, "x.extent(axis)")
  KILN_MISTAKE("a tile has no such member: write transpose(x)") static const Tile T;
  KILN_MISTAKE("a tile has no such member: write x.type()") static const Type dtype;

  KILN_ELEMENTS("a tile has no elements in C++: functions compute with all of them at once; extract(x, {0}, {4}) is a "
                "part of a tile, and unsqueeze(x, 1) is x[:, None]")

  KILN_MISTAKE("a traced condition has no C++ truth value: use for (Tile i : range(0, x.dim(0), 64)) and break_if() "
               "for loops, if_(), where(), or a host bool")
  explicit operator bool() const;
};

class ViewMistakes {
public:
  KILN_MISTAKE("a view has no such member: write view.dim(axis), or view.extent(axis), which is known while tracing")
  static const int64_t shape[5];
  KILN_MISTAKE("a view has no such member: write view.type()") static const Type dtype;
  KILN_MISTAKE("a view has no such member: write transpose(load(view, {m, n}, {64, 32}))") static const Tile T;
  KILN_MISTAKE("a view has no such member: write load(view, {n}, {64})")
  Tile load(AnyArgument = {}, AnyArgument = {}, AnyArgument = {}) const;
  KILN_MISTAKE("a view has no such member: write store(view, {n}, x)")
  void store(AnyArgument = {}, AnyArgument = {}, AnyArgument = {}) const;

  KILN_ELEMENTS("a view has no elements in C++: load(view, {i, j}, shape) reads a tile that begins there, and store() "
                "writes one")
};

#undef KILN_FUNCTION_OF_TILES
#undef KILN_ELEMENTS

} // namespace kiln
