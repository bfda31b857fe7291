// Whole rows as tiles. A tile with exactly the width of its view is never partly out of bounds. If the width is part of
// the specialisation, the compiler can prove this and emits no masks for loads and stores of a row.

#pragma once

#include "dialect/dsl/Tile.h"

#include <initializer_list>

namespace kiln {

/// The common width (last extent) of these views, made part of the specialisation of each.
inline int64_t width(std::initializer_list<View> views, Loc loc = here()) {
  int64_t extent = 0;
  for (const View &view : views)
    extent = view.extent(view.rank() - 1, loc);
  return extent;
}

} // namespace kiln
