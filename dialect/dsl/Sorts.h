// Sorting, top-k, gather and histogram. Tile.h includes this.
//     Tile rank = sort_at(x)[1];

#pragma once

#include "dialect/dsl/Tile.h"

namespace kiln {

/// Sorts the elements along an axis, ascending, or descending with `descending`. NaN comes last in both.
Tile sort(At x, int axis = -1, bool descending = false);
/// The sorted elements and their i32 indices in x. The sort is stable; −0 and +0 are equal.
std::array<Tile, 2> sort_at(At x, int axis = -1, bool descending = false);
/// The k largest elements, in descending order, and their indices. Equal elements keep their order.
std::array<Tile, 2> topk(At x, int64_t k, int axis = -1);

/// Element (…, index[…, i, …], …) of x, like Triton's `gather`; 0 if the index is out of bounds. `index` is a tile of
/// integers of x's rank. Its extents equal those of x, or are 1, except along the axis.
Tile gather(At x, At index, int axis = 0);

/// Counts, as i32, how many elements of a tile of integers are 0, 1, …, bins − 1. Other values are ignored, as are
/// elements for which the mask is false.
Tile histogram(At x, int64_t bins, At mask = true);

} // namespace kiln
