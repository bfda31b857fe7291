// Verbs that are spelt from others, and rarer functions. Tile.h includes this.

#pragma once

#include "dialect/dsl/Tile.h"

namespace kiln {

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

// --- NaN -------------------------------------------------------------------------------------------------------------

/// What the least and the greatest make of a NaN: without this, the other operand.
enum class Nans { ignore, propagate };
Tile min(At a, At b, Nans nans);
Tile max(At a, At b, Nans nans);
Tile clamp(At x, At low, At high, Nans nans);
Tile reduce_max(At x, Axes axes, Nans nans, bool keep = false);
Tile reduce_min(At x, Axes axes, Nans nans, bool keep = false);

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

} // namespace kiln
