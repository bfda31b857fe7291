// Composite and less common functions of the kernel API. Tile.h includes this.

#pragma once

#include "dialect/dsl/Tile.h"

namespace kiln {

namespace detail {
/// A combine function of two states. A state has one scalar for each tile that is reduced or scanned.
using Combine = std::function<std::vector<Tile>(const std::vector<Tile> &earlier, const std::vector<Tile> &later)>;
std::vector<Tile> fold(const char *name, const std::vector<At> &xs, int axis, bool isScan, bool reverse,
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

// --- Reductions ------------------------------------------------------------------------------------------------------
//     Tile total = reduce(x, -1, [](Tile a, Tile b) { return a + b; });

/// The largest or smallest element (reduce_max, reduce_min) and its i32 index (argmax, argmin).
std::array<Tile, 2> max_at(At x, Axes axes = -1, bool keep = false);
std::array<Tile, 2> min_at(At x, Axes axes = -1, bool keep = false);
/// Whether any element, or every element, of a boolean tile is true.
Tile any(At x, Axes axes = -1, bool keep = false);
Tile all(At x, Axes axes = -1, bool keep = false);
/// The mean, Σ x / n, of floats.
Tile mean(At x, Axes axes = -1, bool keep = false);
/// The population variance, Σ (x − mean(x))² / n, of floats, in two passes. f32 computes in f32, f64 in f64, and
/// narrower floats in f32 with one rounding of the result.
Tile var(At x, Axes axes = -1, bool keep = false);

/// Reduces along an axis with a function of two scalars, `Tile combine(Tile a, Tile b)`, like `tl.reduce`.
/// - The function is traced once. It may use the kernel's scalars. It may not use other tiles, memory or loops.
/// - The machine chooses the grouping, so the function should be associative. Elements keep their order. The operands
///   are elements or earlier results, never an identity element.
/// - bf16 and f16 are passed as f32, and the result is rounded once.
template <class F>
  requires std::is_invocable_r_v<Tile, F, Tile, Tile>
Tile reduce(At x, int axis, F combine, Loc loc = here()) {
  return detail::fold("reduce", {x}, axis, false, false, detail::combineOf<1>(combine), loc)[0];
}
/// Reduces several tiles together, `reduce({x, y}, axis, combine)`. They broadcast to one shape. The function is
/// `std::array<Tile, 2> combine(std::array<Tile, 2> a, std::array<Tile, 2> b)`.
template <size_t N, class F> std::array<Tile, N> reduce(const At (&xs)[N], int axis, F combine, Loc loc = here()) {
  return detail::arrayOf<N>(
      detail::fold("reduce", {xs, xs + N}, axis, false, false, detail::combineOf<N>(combine), loc));
}

// --- Scans: element i combines elements 0 to i along the axis, or with `reverse` the last down to i -----------------
//     Tile offsets = cumsum(counts) - counts;

/// Accumulator types are those of sum() and prod(). Narrow floats accumulate in f32; each element is rounded once.
Tile cumsum(At x, int axis = -1, bool reverse = false);
Tile cumprod(At x, int axis = -1, bool reverse = false);
/// NaN is ignored, as by max and min.
Tile cummax(At x, int axis = -1, bool reverse = false);
Tile cummin(At x, int axis = -1, bool reverse = false);
/// Bitwise on integers, logical on boolean.
Tile cumand(At x, int axis = -1, bool reverse = false);
Tile cumor(At x, int axis = -1, bool reverse = false);
Tile cumxor(At x, int axis = -1, bool reverse = false);
/// A scan with a function of two scalars, under the rules of reduce(), like `tl.associative_scan`.
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
//     Tile top = extract(x, {0, 0}, {8, 64});

/// Elements begin[d] + i · steps[d] of each dimension d. All of them must be inside x. Steps may be negative; without
/// `steps` they are 1.
Tile extract(At x, Shape begin, TileExtents shape, Shape steps = {});
/// Reverses the elements along the axis.
Tile flip(At x, int axis = -1);
/// The two halves of x along its last dimension, whose extent is 2, without that dimension, like `tl.split`.
std::array<Tile, 2> split(At x);
/// Two tiles along a new last dimension, like `tl.join`.
Tile join(At a, At b);
/// a[0], b[0], a[1], b[1], … along the last dimension.
Tile interleave(At a, At b);
/// Concatenates tiles of one type along an axis. Their other extents must be equal.
Tile concat(const std::vector<At> &parts, int axis = 0, Loc loc = here());
/// Adds `before[d]` and `after[d]` elements `value` to each dimension d.
Tile pad(At x, Shape before, Shape after, At value);
/// x with the part at `begin` replaced by `part`.
Tile insert(At x, At part, Shape begin);

// --- NaN -------------------------------------------------------------------------------------------------------------
//     Tile m = max(a, b, Nans::propagate);

/// How minima and maxima treat NaN. `ignore`, the default, gives the other operand; `propagate` gives NaN.
enum class Nans { ignore, propagate };
Tile min(At a, At b, Nans nans);
Tile max(At a, At b, Nans nans);
Tile clamp(At x, At low, At high, Nans nans);
Tile reduce_max(At x, Axes axes, Nans nans, bool keep = false);
Tile reduce_min(At x, Axes axes, Nans nans, bool keep = false);
Tile cummax(At x, int axis, Nans nans, bool reverse = false);
Tile cummin(At x, int axis, Nans nans, bool reverse = false);

/// These give boolean. Integers are never NaN or infinite.
Tile isnan(At x);
Tile isinf(At x);
Tile isfinite(At x);

// --- Functions -------------------------------------------------------------------------------------------------------
//     Tile g = silu(x);

/// round() goes to the nearest integer, ties to even; trunc() goes towards zero. Integers stay unchanged.
Tile round(At x);
Tile trunc(At x);
/// The magnitude of x with the sign of `sign`, on floats.
Tile copysign(At x, At sign);
/// The bits of x as another type of that width; not for boolean. Like `tl.cast` with `bitcast=True`.
Tile bitcast(At x, Type type);

/// a / b rounded up, for b ≥ 1, without overflow. The overload of host integers gives a host integer.
Tile cdiv(At a, At b);
constexpr int64_t cdiv(int64_t a, int64_t b) { return a / b + (a % b > 0); }
/// The upper half of the product of two integers of one type, like `tl.umulhi`; `*` gives the lower half.
Tile mulhi(At a, At b);
/// The number of bits of an integer that are 1, in x's type.
Tile popcount(At x);
/// The number of leading zero bits of an integer, in x's type; the width for 0.
Tile clz(At x);
/// The bits of an integer in reverse order.
Tile brev(At x);
/// −1, 0 or 1 by the sign, in x's type. ±0 and NaN stay unchanged.
Tile sign(At x);
/// 1 / (1 + e^−x), without overflow for any x.
Tile sigmoid(At x);
/// x · sigmoid(x).
Tile silu(At x);
/// log(1 + e^x), without overflow for any x.
Tile softplus(At x);
/// e^x / Σ e^x along an axis; the maximum is subtracted first.
Tile softmax(At x, int axis = -1);

// --- Random numbers --------------------------------------------------------------------------------------------------
//     Tile kept = random(seed, row * columns + iota(64, i64)) >= rate;

/// 32 random bits for each i64 index, by Philox-4x32-10. One (seed, index) gives one number under every tiling.
Tile random_bits(At seed, At index);
/// The four Philox words of an index; random_bits() is the first. They cost hardly more than one.
std::array<Tile, 4> random_words(At seed, At index);
/// Uniform f32 in [0, 1) with 24 random bits.
Tile random(At seed, At index);
/// Normal f32 with mean 0 and standard deviation 1, at most ±6.8, by the Box-Muller method from the first two words.
/// It is √(−2 · log u) · cos(v) with u = (word 0 + ½) · 2⁻³² and v = word 1 (signed) · 2π · 2⁻³². Words count as f32.
Tile random_normal(At seed, At index);

} // namespace kiln
