// Overloads for likely mistakes, such as a mask in the wrong place, or a former name. Each is a static_assert with one
// clear sentence, instead of many lines about templates. Tile.h includes this; none of it can be used.

#pragma once

#include "dialect/dsl/Tile.h"

namespace kiln {

/// An argument where other languages have a mask, and where a list of offsets belongs.
template <class T>
concept NoList = std::same_as<T, Tile> || std::is_arithmetic_v<T>;

template <class T> void refuseMaskOfLoad() {
  static_assert(sizeof(T) == 0, "a load's mask stands in braces, load(view, {n}, {64}, {.mask = m}), and there is no "
                                "other value: what lies outside the view or the mask reads the padding, such as "
                                "Padding::zero; choose among loaded elements by where()");
}
template <class T> void refuseMaskOfStore() {
  static_assert(sizeof(T) == 0, "a store takes a view, its offsets and a value, which brings its own shape; a mask "
                                "stands in braces: store(view, {n}, x, {.mask = m})");
}
template <class T> void refuseOffset() {
  static_assert(sizeof(T) == 0, "the offsets of a view are a list in braces, one for each dimension: {n}, {m, 0}");
}

template <NoList T, class... More> Tile load(View, Offsets, TileExtents, T, More...) {
  return refuseMaskOfLoad<T>(), 0;
}
template <NoList T, class... More> void store(View, Offsets, At, T, More...) { refuseMaskOfStore<T>(); }
template <NoList T, class... More> void store(View, Offsets, std::initializer_list<int64_t>, T, More...) {
  refuseMaskOfStore<T>();
}
template <NoList T, class... More> Tile atomic_add(View, Offsets, At, T, More...) { return refuseMaskOfStore<T>(), 0; }

template <NoList T, class... More> Tile load(View, T, TileExtents, More...) { return refuseOffset<T>(), 0; }
template <NoList T, class... More> void store(View, T, At, More...) { refuseOffset<T>(); }
template <NoList T, class... More> Tile atomic_add(View, T, At, More...) { return refuseOffset<T>(), 0; }

template <std::same_as<Tile> T> Tile iota(const T &count, Type = Type::i32, Loc = here()) {
  static_assert(sizeof(T) == 0, "iota counts to an integer that is known while tracing, such as a config's field, or "
                                "view.extent(i) in place of view.dim(i)");
  return count;
}

/// An argument of any type. A kernel's own function of such a name is a better match than a template of these.
struct AnyArgument {
  AnyArgument() = default;
  template <class T> AnyArgument(const T &) {}
  AnyArgument(std::initializer_list<AnyArgument>) {}
};

/// Options of Triton's load.
struct OptionsWithOther {
  Padding padding = Padding::zero;
  At mask = true;
  AnyArgument other = {};
  Cache cache = Cache::evict_normal;
};
template <class T = Tile> T load(View, Offsets, TileExtents, OptionsWithOther, AnyArgument = {}) {
  static_assert(sizeof(T) == 0, "load has no option .other: elements outside the view or the mask read .padding, such "
                                "as Padding::zero; where() chooses another value");
  return T();
}

/// The bounds of Triton's arange.
template <class First, class Last>
  requires std::integral<Last> || std::same_as<Last, Tile>
Tile iota(const First &, const Last &) {
  static_assert(sizeof(First) == 0, "iota takes a count: iota(64) is 0 to 63, and n + iota(64) is n to n + 63");
  return 0;
}

// --- Former names ----------------------------------------------------------------------------------------------------

template <class T = Tile> T expand(AnyArgument, AnyArgument) {
  static_assert(sizeof(T) == 0, "the name of expand() is unsqueeze()");
  return T();
}
template <class T = Tile> T take(AnyArgument, AnyArgument, AnyArgument = {}) {
  static_assert(sizeof(T) == 0, "the name of take() is gather()");
  return T();
}
template <class T = Tile> T gather(View, AnyArgument, AnyArgument, AnyArgument, AnyArgument = {}, AnyArgument = {}) {
  static_assert(sizeof(T) == 0, "gather() is for tiles: load(view, {rows, 0}, {C}) reads rows of a view");
  return T();
}
template <class T = Tile> void scatter(View, AnyArgument, AnyArgument, AnyArgument, AnyArgument = {}) {
  static_assert(sizeof(T) == 0, "store(view, {rows, 0}, x) writes rows of a view");
}
template <class T = Tile> void when(AnyArgument, AnyArgument, AnyArgument = {}) {
  static_assert(sizeof(T) == 0, "the name of when() is if_()");
}
template <class T = Tile> void continue_when(AnyArgument) {
  static_assert(sizeof(T) == 0, "the name of continue_when() is continue_if()");
}
template <class T = Tile> void break_when(AnyArgument) {
  static_assert(sizeof(T) == 0, "the name of break_when() is break_if()");
}
template <class T = Tile> void return_when(AnyArgument) {
  static_assert(sizeof(T) == 0, "the name of return_when() is return_if()");
}
template <class T = Tile> void check(AnyArgument, AnyArgument) {
  static_assert(sizeof(T) == 0, "the name of check() is device_assert()");
}
template <class T = int64_t> T ceildiv(AnyArgument, AnyArgument) {
  static_assert(sizeof(T) == 0, "the name of ceildiv() is cdiv()");
  return T();
}

// --- Names of Triton's -----------------------------------------------------------------------------------------------

template <class T = Tile> T arange(AnyArgument, AnyArgument = {}, AnyArgument = {}) {
  static_assert(sizeof(T) == 0, "the name of arange() is iota(): iota(64) is 0 to 63");
  return T();
}
/// Of one tile.
template <class T = Tile> T max(AnyArgument) {
  static_assert(sizeof(T) == 0, "max(a, b) is elementwise; the largest element along an axis is reduce_max(x, axis)");
  return T();
}
template <class T = Tile> T min(AnyArgument) {
  static_assert(sizeof(T) == 0, "min(a, b) is elementwise; the smallest element along an axis is reduce_min(x, axis)");
  return T();
}
template <class T = Tile> T maximum(AnyArgument, AnyArgument) {
  static_assert(sizeof(T) == 0, "the name of maximum() is max()");
  return T();
}
template <class T = Tile> T minimum(AnyArgument, AnyArgument) {
  static_assert(sizeof(T) == 0, "the name of minimum() is min()");
  return T();
}

} // namespace kiln
