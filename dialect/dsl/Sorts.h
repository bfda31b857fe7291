// Verbs whose elements find their places by values: sorting, taking and counting. Tile.h includes this.

#pragma once

#include "dialect/dsl/Tile.h"

namespace kiln {

/// The elements along an axis, smallest first, or largest first with `descending`; NaN stand last either way.
Tile sort(At x, int axis = -1, bool descending = false);
/// The same, and the i32 position that each had: −0 and +0 are equal, and equal elements keep their order.
std::array<Tile, 2> sort_at(At x, int axis = -1, bool descending = false);
/// The k largest elements, largest first, and their positions; of equal ones the first.
std::array<Tile, 2> topk(At x, int64_t k, int axis = -1);

/// Element (…, index[…, i, …], …) of x; 0 where there is no such position. `index`, of integers, has x's rank, and its
/// extents but along the axis, or 1 there.
Tile take(At x, At index, int axis = 0);

/// How many elements of a tile of integers are 0, 1, …, bins − 1, i32; other values are not counted, nor are elements
/// for which the mask is false.
Tile histogram(At x, int64_t bins, At mask = true);

} // namespace kiln
