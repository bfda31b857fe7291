// Whole rows as tiles. A tile that is as wide as its view never hangs over the side of it; when the width is part of
// the specialisation the compiler knows, and no load or store of a row is masked.

#pragma once

#include "dialect/dsl/Tile.h"

#include <initializer_list>

namespace kiln {

/// The width (last extent) that these views share, made part of the specialisation of each of them.
inline int64_t width(std::initializer_list<View> views, Loc loc = here()) {
  int64_t extent = 0;
  for (const View &view : views)
    extent = view.extent(view.rank() - 1, loc);
  return extent;
}

} // namespace kiln
