// Verbs that are spelt from others, and rarer functions. Tile.h includes this.

#pragma once

#include "dialect/dsl/Tile.h"

namespace kiln {

namespace detail {
/// A function of two states, each a scalar of every tile that is reduced or scanned.
using Combine = std::function<std::vector<Tile>(const std::vector<Tile> &earlier, const std::vector<Tile> &later)>;
std::vector<Tile> fold(const char *verb, const std::vector<At> &xs, int axis, bool isScan, bool reverse,
                       const Combine &combine, Loc loc);

template <size_t N> std::array<Tile, N> arrayOf(const std::vector<Tile> &tiles) {
  return [&]<size_t... I>(std::index_sequence<I...>) {
    return std::array<Tile, N>{tiles[I]...};
  }(std::make_index_sequence<N>());
}
template <size_t N, class F> Combine combineOf(F &combine) {
  return [&combine](const std::vector<Tile> &earlier, const std::vector<Tile> &later) {
    if constexpr (N == 1) {
      return std::vector<Tile>{combine(earlier[0], later[0])};
    } else {
      const std::array<Tile, N> both = combine(arrayOf<N>(earlier), arrayOf<N>(later));
      return std::vector<Tile>(both.begin(), both.end());
    }
  };
}
} // namespace detail

Tile &operator+=(Tile &a, At b);
Tile &operator-=(Tile &a, At b);
Tile &operator*=(Tile &a, At b);
Tile &operator/=(Tile &a, At b);
Tile &operator%=(Tile &a, At b);
Tile &operator&=(Tile &a, At b);
Tile &operator|=(Tile &a, At b);
Tile &operator^=(Tile &a, At b);
Tile &operator<<=(Tile &a, At b);
Tile &operator>>=(Tile &a, At b);

// --- Memory: rows by their numbers -----------------------------------------------------------------------------------

/// Rows `rows[…]` of the view; `offsets` begin the other dimensions and `shape` is theirs.
Tile gather(View view, At rows, Offsets offsets, TileExtents shape, Padding padding = Padding::zero, Loc loc = here());
void scatter(View view, At rows, Offsets offsets, At value, Loc loc = here());

// --- Reductions ------------------------------------------------------------------------------------------------------

/// The largest or smallest element, as reduce_max and reduce_min give it, and its i32 index, as argmax and argmin do.
std::array<Tile, 2> max_at(At x, Axes axes = -1, bool keep = false);
std::array<Tile, 2> min_at(At x, Axes axes = -1, bool keep = false);
/// Whether any, or every, element of a boolean tile is true.
Tile any(At x, Axes axes = -1, bool keep = false);
Tile all(At x, Axes axes = -1, bool keep = false);

/// Combines the elements along an axis by a function of two scalars, `Tile combine(Tile a, Tile b)`, which is traced
/// once: in an order and grouping of the machine's, so that it is associative as far as the caller minds; neighbours
/// keep their order, and nothing but elements is combined. It may use scalars from outside, but no other tiles, memory
/// or loops. bf16 and f16 are given to it as f32, and its result is rounded once.
template <class F>
  requires std::is_invocable_r_v<Tile, F, Tile, Tile>
Tile reduce(At x, int axis, F combine, Loc loc = here()) {
  return detail::fold("reduce", {x}, axis, false, false, detail::combineOf<1>(combine), loc)[0];
}
/// The same of several tiles at once, `reduce({x, y}, axis, combine)`, which broadcast to one shape:
/// `std::array<Tile, 2> combine(std::array<Tile, 2> a, std::array<Tile, 2> b)`.
template <size_t N, class F> std::array<Tile, N> reduce(const At (&xs)[N], int axis, F combine, Loc loc = here()) {
  return detail::arrayOf<N>(
      detail::fold("reduce", {xs, xs + N}, axis, false, false, detail::combineOf<N>(combine), loc));
}

// --- Scans: element i combines elements 0 to i along the axis, or with `reverse` the last down to i -----------------

/// Small integers are summed, and multiplied, as sum() has it; narrow floats in f32, each element rounded once.
Tile cumsum(At x, int axis = -1, bool reverse = false);
Tile cumprod(At x, int axis = -1, bool reverse = false);
/// NaN is passed over, as by max and min.
Tile cummax(At x, int axis = -1, bool reverse = false);
Tile cummin(At x, int axis = -1, bool reverse = false);
/// Bitwise on integers, logical on boolean.
Tile cumand(At x, int axis = -1, bool reverse = false);
Tile cumor(At x, int axis = -1, bool reverse = false);
Tile cumxor(At x, int axis = -1, bool reverse = false);
/// By a function, as reduce() has it.
template <class F>
  requires std::is_invocable_r_v<Tile, F, Tile, Tile>
Tile scan(At x, int axis, F combine, bool reverse = false, Loc loc = here()) {
  return detail::fold("scan", {x}, axis, true, reverse, detail::combineOf<1>(combine), loc)[0];
}
template <size_t N, class F>
std::array<Tile, N> scan(const At (&xs)[N], int axis, F combine, bool reverse = false, Loc loc = here()) {
  return detail::arrayOf<N>(
      detail::fold("scan", {xs, xs + N}, axis, true, reverse, detail::combineOf<N>(combine), loc));
}

// --- Parts of tiles --------------------------------------------------------------------------------------------------

/// Elements begin[d] + i · steps[d] of each dimension, which all lie in x; steps may be negative, and are 1 without
/// them.
Tile extract(At x, Shape begin, TileExtents shape, Shape steps = {});
Tile flip(At x, int axis = -1);
/// Those of the last dimension, of extent 2, which disappears.
std::array<Tile, 2> split(At x);
/// Two tiles beside each other along a new last dimension.
Tile join(At a, At b);
/// a[0], b[0], a[1], b[1], … along the last dimension.
Tile interleave(At a, At b);
/// Tiles of one type one behind the other along an axis; their other extents agree.
Tile concat(const std::vector<At> &parts, int axis = 0, Loc loc = here());
/// So many elements `value` before and after those of each dimension.
Tile pad(At x, Shape before, Shape after, At value);
/// x with a part of it, which begins there, replaced.
Tile insert(At x, At part, Shape begin);

// --- NaN -------------------------------------------------------------------------------------------------------------

/// What the least and the greatest make of a NaN: without this, the other operand.
enum class Nans { ignore, propagate };
Tile min(At a, At b, Nans nans);
Tile max(At a, At b, Nans nans);
Tile clamp(At x, At low, At high, Nans nans);
Tile reduce_max(At x, Axes axes, Nans nans, bool keep = false);
Tile reduce_min(At x, Axes axes, Nans nans, bool keep = false);
Tile cummax(At x, int axis, Nans nans, bool reverse = false);
Tile cummin(At x, int axis, Nans nans, bool reverse = false);

/// boolean tiles; of integers none is NaN or infinite.
Tile isnan(At x);
Tile isinf(At x);
Tile isfinite(At x);

// --- Functions -------------------------------------------------------------------------------------------------------

/// To the nearest whole number, ties to even; towards zero. Integers are their own.
Tile round(At x);
Tile trunc(At x);
/// The size of x with the sign of `sign`, of floats.
Tile copysign(At x, At sign);
/// The same bits as a number of another type of the same width; not of boolean.
Tile bitcast(At x, Type type);

/// The upper half of a product's bits, of integers of one type; `*` gives the lower one.
Tile mulhi(At a, At b);
/// −1, 0 or 1 by the sign, of x's type; ±0 and NaN are their own.
Tile sign(At x);
/// 1 / (1 + e^−x), which no x overflows.
Tile sigmoid(At x);
/// x · sigmoid(x).
Tile silu(At x);
/// log(1 + e^x), which no x overflows.
Tile softplus(At x);
/// e^x / Σ e^x along an axis, from numbers less the largest.
Tile softmax(At x, int axis = -1);

// --- Random numbers --------------------------------------------------------------------------------------------------

/// 32 random bits for each i64 index, by Philox-4x32-10: one number for one (seed, index) under every tiling.
Tile random_bits(At seed, At index);
/// The four words of that number, of which random_bits() is the first: they take hardly longer than one.
std::array<Tile, 4> random_words(At seed, At index);
/// Uniform f32 in [0, 1), with 24 random bits.
Tile random(At seed, At index);
/// Normal f32 of mean 0 and deviation 1, none beyond ±6.8, by Box and Muller from the first two words of the number:
/// √(−2 · log u) · cos(v), where u = (word 0 + ½) · 2⁻³² and v = word 1 (signed) · 2π · 2⁻³², the words as f32.
Tile random_normal(At seed, At index);

} // namespace kiln
